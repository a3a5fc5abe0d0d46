// kafkajs, as foreign_clients.py says.
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const say = line => process.stdout.write(line + '\n')
const [verb, bootstrap, topic, ...words] = process.argv.slice(2)
const rest = words.filter(word => !word.includes('='))
const settings = Object.fromEntries(
  words.filter(word => word.includes('=')).map(word => [word.split('=')[0], true])
)
const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.ERROR })

async function produce(codec, first, count) {
  const types = { none: 'None', gzip: 'GZIP', snappy: 'Snappy' }
  const producer = kafka.producer(settings)
  await producer.connect()
  const messages = numbered(first, count)
  await producer.send({ topic, messages, compression: CompressionTypes[types[codec]] })
  await producer.disconnect()
  say(`sent ${count}`)
}

async function transact(first, count) {
  const producer = kafka.producer({ transactionalId: topic, idempotent: true, maxInFlightRequests: 1 })
  await producer.connect()
  const given_up = await producer.transaction()
  await given_up.send({ topic, messages: numbered(first, count) })
  await given_up.abort()
  say(`aborted ${count}`)
  const kept = await producer.transaction()
  await kept.send({ topic, messages: numbered(first, count) })
  await kept.commit()
  await producer.disconnect()
  say(`committed ${count}`)
}

function numbered(first, count) {
  const messages = []
  for (let n = Number(first); n < Number(first) + Number(count); n++) {
    messages.push({ key: `k${n}`, value: `${n}` })
  }
  return messages
}

async function consume(groupId, count) {
  const consumer = kafka.consumer({ groupId, ...settings })
  let seen = 0
  let finish
  const finished = new Promise(resolve => (finish = resolve))
  process.on('SIGTERM', () => finish())
  consumer.on(consumer.events.GROUP_JOIN, e => {
    const partitions = Object.values(e.payload.memberAssignment).flat()
    say(`assigned ${partitions.length}`)
  })
  consumer.on(consumer.events.CRASH, e => {
    console.error(e.payload.error)
    process.exit(1)
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ partition, message }) => {
      const { offset, key, value, timestamp } = message
      say(`message ${partition} ${offset} ${key} ${value} ${timestamp}`)
      await consumer.commitOffsets([{ topic, partition, offset: `${Number(offset) + 1}` }])
      say(`committed ${++seen}`)
      if (Number(count) !== 0 && seen >= Number(count)) finish()
    },
  })
  await finished
  await consumer.disconnect()
  say('left')
}

async function administer(group) {
  // Its default replicationFactor, -1, is one of brokers from 2.4 on.
  const admin = kafka.admin()
  await admin.connect()
  await admin.createTopics({ topics: [{ topic, numPartitions: 2, replicationFactor: 1 }] })
  say(`created ${topic}`)
  while (!(await admin.listTopics()).includes(topic)) {
    await new Promise((done) => setTimeout(done, 100)) // any broker answers, in its turn
  }
  say(`listed ${topic}`)
  const { groups } = await admin.listGroups()
  if (groups.some(g => g.groupId === group)) say(`group ${group}`)
  const described = (await admin.describeGroups([group])).groups[0]
  say(`state ${described.state} ${described.members.length}`)
  await admin.deleteTopics({ topics: [topic] })
  say(`deleted ${topic}`)
  await admin.disconnect()
}

const verbs = { produce, transact, consume, admin: administer }
verbs[verb](...rest).then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
