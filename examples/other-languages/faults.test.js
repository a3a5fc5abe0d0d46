// A suite in Node that breaks requests to a local cluster by rule, with kafkajs:
//
//     kafka08 up --detach --control 127.0.0.1:0 && eval "$(kafka08 status --env)"
//     npm install kafkajs && node --test faults.test.js

const assert = require('node:assert')
const { readFileSync } = require('node:fs')
const { after, before, test } = require('node:test')
const { Kafka, logLevel } = require('kafkajs')

const control = process.env.KAFKA08_CONTROL
const token = readFileSync(process.env.KAFKA08_CONTROL_TOKEN_FILE, 'utf8').trim()
const brokers = process.env.KAFKA08_BOOTSTRAP.split(',')
const topic = `node-${process.pid}`
const kafka = new Kafka({
  brokers, logLevel: logLevel.NOTHING, requestTimeout: 2000, retry: { initialRetryTime: 20 },
})
const producer = kafka.producer()

/** What the cluster says to a request, as JSON. */
async function ask(method, path, body = {}) {
  const response = await fetch(control + path, {
    method,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: method === 'GET' ? undefined : JSON.stringify(body),
  })
  const said = await response.json()
  assert.ok(response.ok, said.error)
  return said
}

/** How many messages the topic has. */
async function stored() {
  const admin = kafka.admin()
  await admin.connect()
  const [partition] = await admin.fetchTopicOffsets(topic)
  await admin.disconnect()
  return Number(partition.high)
}

before(async () => {
  await ask('POST', '/topics', { name: topic, replication_factor: 2 })
  await producer.connect()
})

after(async () => {
  await producer.disconnect()
  await ask('POST', '/heal')
})

test('an error is tried again', async () => {
  const rule = await ask('POST', '/faults', { api: 'Produce', topic, error: 'NOT_ENOUGH_REPLICAS', times: 2 })
  await producer.send({ topic, messages: [{ value: 'once' }] })
  assert.equal((await ask('DELETE', `/faults/${rule.number}`)).hits, 2)
  assert.equal(await stored(), 1)
})

test('an acknowledgement that is lost makes a duplicate', async () => {
  await ask('POST', '/faults', { api: 'Produce', topic, close: 'after', times: 1 })
  await producer.send({ topic, messages: [{ value: 'twice' }] })
  assert.equal(await stored(), 3)
})

test('another broker leads when the leader dies', async () => {
  const { leader } = await ask('POST', '/wait/leader', { topic })
  await ask('POST', '/wait/isr', { topic })
  await ask('POST', `/brokers/${leader}/kill`, { expire: true })
  await ask('POST', '/wait/leader', { topic, other_than: leader })
  await producer.send({ topic, messages: [{ value: 'after' }] })
  assert.equal(await stored(), 4)
})
