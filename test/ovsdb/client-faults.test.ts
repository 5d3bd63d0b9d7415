import t, { type Test } from 'tap'
import { OvsdbError } from '../../src/ovsdb/connection.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'
import { until } from '../support/until.ts'
import { healthy, type OvsdbAnswer, type OvsdbRequest, ScriptedOvsdb } from './scripted-ovsdb.ts'
import { ClientStage } from './stage.ts'

/** A client of a scripted server, with timers that the test advances. */
class FaultStage {
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly server: ScriptedOvsdb
  readonly stage: ClientStage

  constructor(t: Test, server: ScriptedOvsdb) {
    this.server = server
    const { clock, timers } = this
    this.stage = new ClientStage(t, `tcp:127.0.0.1:${server.port}`, { clock, timers })
  }

  static async open(t: Test, answer?: (request: OvsdbRequest) => OvsdbAnswer): Promise<FaultStage> {
    return new FaultStage(t, await ScriptedOvsdb.open(t, answer))
  }

  async pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += 1000) {
      this.clock.pass(1000)
      await this.timers.advance(1000)
    }
  }

  /** Waits for a connection, letting waits between attempts pass. */
  async synced(count: number): Promise<void> {
    await until(async () => {
      if (this.stage.syncs < count) await this.pass(1000)
      return this.stage.syncs >= count
    }, `${count} connections`)
  }
}

t.test('recovers from what a server sends instead of data', async (t) => {
  const bad = [
    ...['HTTP/1.1 400 Bad Request\r\n', '{"id":1,}', '{{}}', '['.repeat(9), '\0\0'],
    `{"a":${'['.repeat(99)}`,
    '{"id":null,"method":"update2","params":["OVN_Northbound",7]}',
    '{"id":null,"method":"update2","params":["OVN_Northbound",{"Address_Set":{"u":{}}}]}',
    '{"id":null,"method":"update2","params":["OVN_Northbound",{"Address_Set":{"u":{"insert":{"name":[]}}}}]}',
  ]
  const fault = await FaultStage.open(t)
  for (const [i, octets] of bad.entries()) {
    await fault.synced(i + 1)
    fault.server.send(octets)
    await until(() => fault.stage.client.reason !== '', `the end after ${JSON.stringify(octets)}`)
  }
  await fault.synced(bad.length + 1)
  t.equal(fault.stage.client.reason, '')
  t.equal(fault.server.connections, bad.length + 1)
})

t.test('ignores messages that it does not know', async (t) => {
  const fault = await FaultStage.open(t)
  await fault.synced(1)
  fault.server.send('{"id":99,"result":[],"error":null}{"id":"x","result":null,"error":null}{}')
  fault.server.send(
    '{"id":null,"method":"locked","params":["x"]}{"id":null,"method":"update","params":3}',
  )
  fault.server.send(
    '{"id":"e1","method":"echo","params":["a"]}{"id":7,"method":"steal","params":[]}',
  )
  const { requests } = fault.server
  await until(() => requests.some(({ id }) => id === 7), 'replies')
  const replies = requests.filter(({ method }) => method === undefined)
  t.same(replies, [
    { result: ['a'], error: null, id: 'e1' },
    { result: null, error: 'unknown method', id: 7 },
  ])
  t.equal(fault.stage.client.reason, '')
})

t.test('waits for the rest of a message, but not for ever', async (t) => {
  const half = '{"id":null,"method":"update2","params":["OVN_Northbound",{"Address_Set":{"u":{"ins'
  const fault = await FaultStage.open(t)
  await fault.synced(1)
  fault.server.send(half)
  fault.server.send('ert":{"name":"a"}}}}]}')
  await until(() => fault.stage.changes.length === 1, 'the row')
  fault.server.answer = () => undefined
  fault.server.send(half)
  await fault.pass(40_000)
  t.match(fault.stage.lines.at(-1), /the server did not reply in 30 s; retrying$/)
})

t.test('takes an update in the same packet as the reply before it', async (t) => {
  const fault = await FaultStage.open(t, ({ method, ...rest }) => {
    if (method !== 'monitor_cond') return healthy({ method, ...rest })
    const { id } = rest
    const row = (name: string) => ({ Address_Set: { [name]: { insert: { name } } } })
    const reply = JSON.stringify({ id, error: null, result: row('a') })
    const params = ['OVN_Northbound', row('b')]
    return { octets: reply + JSON.stringify({ id: null, method: 'update2', params }) }
  })
  await fault.synced(1)
  t.strictSame(fault.stage.rows(), ['a: ', 'b: '])
})

t.test('is not synced if a fault follows in the same packet as the last reply', async (t) => {
  let isBroken = true
  const fault = await FaultStage.open(t, (request) => {
    if (request.method !== 'monitor_cond' || !isBroken) return healthy(request)
    const reply = { id: request.id, error: null, result: {} }
    return { octets: `${JSON.stringify(reply)}HTTP/1.1 400 Bad Request\r\n` }
  })
  const { stage } = fault
  const done = stage.client.transact([])
  await until(async () => {
    await fault.pass(1000)
    return fault.server.connections >= 3
  }, 'more connections')
  t.equal(stage.syncs, 0)
  t.equal(stage.lines.length, 1, 'the fault is logged once')
  t.match(stage.lines[0], /received data that is not a JSON object; retrying$/)
  isBroken = false
  await fault.synced(1)
  t.strictSame(await done, [], 'the transaction has waited')
})

t.test('asks a silent server for an echo, and leaves it without one', async (t) => {
  const fault = await FaultStage.open(t)
  await fault.synced(1)
  const echoes = () => fault.server.requests.filter(({ method }) => method === 'echo').length
  await fault.pass(15_000)
  await until(() => echoes() === 1, 'an echo')
  await fault.pass(5000)
  t.equal(fault.stage.client.reason, '')
  fault.server.answer = () => undefined
  await fault.pass(60_000)
  t.match(fault.stage.client.reason, /did not reply in 30 s/)
})

t.test('ends a connection whose server does not reply to a transaction', async (t) => {
  const fault = await FaultStage.open(t, (request) => {
    return request.method === 'transact' ? undefined : healthy(request)
  })
  await fault.synced(1)
  const open = fault.stage.client.transact([])
  // Handled before the timers advance, or it counts as unhandled.
  const rejected = t.rejects(open, new OvsdbError('', 'the server did not reply in 30 s'))
  await fault.pass(40_000)
  await rejected
})

t.test('rejects invalid replies to transactions', async (t) => {
  const results = [null, 1, [], [{ error: 'timed out', details: 'late' }], [null, { error: 'x' }]]
  const fault = await FaultStage.open(t)
  await fault.synced(1)
  for (const result of results) {
    fault.server.answer = () => ({ result })
    await t.rejects(fault.stage.client.transact([{ op: 'comment' }]), { name: 'OvsdbError' })
  }
  fault.server.answer = ({ id }) => ({ octets: JSON.stringify({ id, result: null, error: 'no' }) })
  await t.rejects(fault.stage.client.transact([]), { message: '"no"' })
  t.equal(fault.stage.client.reason, '', 'the connection is kept')
})

t.test('refuses servers that are not fit, without haste', async (t) => {
  const row = { name: 'OVN_Northbound', model: 'clustered', connected: true, leader: true }
  const bad: readonly [string, object][] = [
    ['not the leader', { u: { initial: { ...row, leader: false } } }],
    ['not the leader', { u: { initial: { ...row, leader: 'yes' } } }],
    ['not connected to the cluster', { u: { initial: { name: row.name, model: row.model } } }],
    ['no database OVN_Northbound', {}],
    ['invalid update of row u', { u: { initial: { model: [] } } }],
  ]
  for (const [why, rows] of bad) {
    const fault = await FaultStage.open(t, ({ method }) => {
      if (method === 'list_dbs') return { result: ['_Server', 'OVN_Northbound'] }
      return { result: { Database: rows } }
    })
    await until(() => fault.stage.lines.length > 0, why)
    t.match(fault.stage.client.reason, why)
    await fault.pass(60_000)
    t.ok(fault.server.connections < 20, 'the waits grow')
    t.equal(fault.stage.lines.length, 1, 'the fault is logged once')
  }
  const other = await FaultStage.open(t, () => ({ result: ['Open_vSwitch'] }))
  await until(() => other.stage.lines.length > 0, 'a fault')
  t.match(other.stage.client.reason, 'no database OVN_Northbound')
})

t.test('leaves a server that lost the lead', async (t) => {
  const row = { name: 'OVN_Northbound', model: 'clustered', connected: true, leader: true }
  const fault = await FaultStage.open(t, ({ method, params }) => {
    if (method === 'list_dbs') return { result: ['_Server', 'OVN_Northbound'] }
    return { result: params[0] === '_Server' ? { Database: { u: { initial: row } } } : {} }
  })
  await fault.synced(1)
  const change = { Database: { u: { modify: { leader: false } } } }
  fault.server.send(JSON.stringify({ id: null, method: 'update2', params: ['_Server', change] }))
  await until(() => fault.stage.client.reason !== '', 'the end')
  t.match(fault.stage.client.reason, 'not the leader')
})

t.test('a server that accepts clients and then fails is not tried in haste', async (t) => {
  const fault = await FaultStage.open(t)
  for (let i = 1; i < 6; i++) {
    await fault.synced(i)
    fault.server.send('x')
    await until(() => fault.stage.client.reason !== '', 'the end')
  }
  const { connections } = fault.server
  await fault.timers.advance(500)
  t.equal(fault.server.connections, connections)
})

t.test('a server that reads nothing cannot make it buffer without bound', async (t) => {
  const fault = await FaultStage.open(t)
  await fault.synced(1)
  for (const socket of fault.server.sockets) socket.pause()
  const big = 'x'.repeat(8 * 1024 * 1024)
  const open = Array.from({ length: 12 }, () => fault.stage.client.transact([{ comment: big }]))
  const results = await Promise.allSettled(open)
  t.ok(results.every(({ status }) => status === 'rejected'))
  t.match(fault.stage.client.reason, 'reads too slowly')
})

t.test('an address that the system refuses at once does not end the process', async (t) => {
  const stage = await new Promise<ClientStage>((resolve) => {
    setImmediate(() => resolve(new ClientStage(t, 'tcp:255.255.255.255:6641')))
  })
  await until(() => stage.lines.length > 0, 'the fault')
  t.match(stage.client.reason, /tcp:255\.255\.255\.255:6641: connect E/)
})
