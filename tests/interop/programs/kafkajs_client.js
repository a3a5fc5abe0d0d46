// kafkajs, as foreign_clients.py says.
const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const say = line => process.stdout.write(line + '\n')
const [verb, bootstrap, topic, ...rest] = process.argv.slice(2)
const kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.ERROR })

async function produce(codec, first, count) {
  const types = { none: 'None', gzip: 'GZIP', snappy: 'Snappy' }
  const producer = kafka.producer()
  await producer.connect()
  const messages = []
  for (let n = Number(first); n < Number(first) + Number(count); n++) {
    messages.push({ key: `k${n}`, value: `${n}` })
  }
  await producer.send({ topic, messages, compression: CompressionTypes[types[codec]] })
  await producer.disconnect()
  say(`sent ${count}`)
}

async function consume(groupId, count) {
  const consumer = kafka.consumer({ groupId })
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

const verbs = { produce, consume, admin: administer }
verbs[verb](...rest).then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
