import t from 'tap'
import { pprof } from '../../../src/plugins/pprof/setup.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

t.test('accepts the syntax of CoreDNS', async (t) => {
  const table = [
    { given: 'pprof', address: 'localhost:6053', warns: false },
    { given: 'pprof 127.0.0.1:7070', address: '127.0.0.1:7070', warns: false },
    { given: 'pprof [::1]:7070', address: '[::1]:7070', warns: false },
    {
      given: 'pprof :7070',
      address: ':7070',
      warns: /^1: :7070 is not only on loopback: any client/,
    },
    {
      given: 'pprof 192.0.2.1:7070',
      address: '192.0.2.1:7070',
      warns: /^1: 192\.0\.2\.1:7070 is n/,
    },
    { given: 'pprof {\n block\n}', address: 'localhost:6053', warns: /^2: block has no effect/ },
    { given: 'pprof {\n block 20\n}', address: 'localhost:6053', warns: /^2: block has no effect/ },
  ]
  for (const { given, address, warns } of table) {
    const c = new SetUp(pprof, given)
    t.strictSame(
      [...c.endpoints.keys()],
      ['', 'profile', 'heap'].map((name) => `${address}/debug/pprof/${name}`),
      given,
    )
    t.match(c.warnings, warns === false ? [] : [warns], given)
    t.equal(c.warnings.length, warns === false ? 0 : 1, given)
  }
  for (const [given, error] of [
    ['pprof localhost', /missing port in address/],
    ['pprof :1 :2', /Wrong argument count/],
    ['pprof\npprof', /can only be used once per Server Block/],
    ['pprof {\n blok\n}', /unknown property 'blok'; did you mean block\?/],
    ['pprof {\n block 1 2\n}', /Wrong argument count/],
    ['pprof {\n block often\n}', /block "often": use a number/],
  ] as const) {
    t.match(setupError(pprof, given), error, given)
  }
})

const CPU = 'localhost:6053/debug/pprof/profile'
const HEAP = 'localhost:6053/debug/pprof/heap'

t.test('makes one profile at a time, of this thread', async (t) => {
  const timers = new FakeTimers()
  const c = new SetUp(pprof, 'pprof', undefined, { timers })
  const index = await c.get('localhost:6053/debug/pprof/')
  t.match(index, { status: 200, body: /^threads: main\n/ }, 'no data thread here')
  const profile = c.get(CPU, { query: 'seconds=60' })
  await until(() => timers.count === 1, 'the wait')
  t.match(await c.get(HEAP), { status: 503, body: /^another profile is being made/ })
  await timers.advance(59_999)
  t.equal(timers.count, 1)
  await timers.advance(1)
  const { status, contentType, body } = await profile
  t.match({ status, contentType }, { status: 200, contentType: 'application/json' })
  const { nodes, startTime, endTime } = JSON.parse(body)
  t.equal(nodes[0].callFrame.functionName, '(root)')
  t.ok(endTime > startTime)

  const heap = c.get(HEAP, { query: 'thread=main&seconds=1' })
  await until(() => timers.count === 1, 'the wait')
  const kept = Array.from({ length: 100_000 }, (_, i) => ({ i }))
  await timers.advance(1000)
  t.match(JSON.parse((await heap).body), { head: { callFrame: {} }, samples: [{ size: Number }] })
  t.equal(kept.length, 100_000)
})

t.test('refuses what it cannot make', async (t) => {
  const c = new SetUp(pprof, 'pprof')
  for (const [query, error] of [
    ['seconds=0', /^seconds must be a number from 1 to 60/],
    ['seconds=61', /^seconds must be/],
    ['seconds=1.5', /^seconds must be/],
    ['seconds=many', /^seconds must be/],
    ['thread=0', /^thread must be one of main\n/],
    ['thread=', /^thread must be/],
  ] as const) {
    t.match(await c.get(CPU, { query }), { status: 400, body: error }, query)
  }
})

t.test('the end of the instance ends the profile', async (t) => {
  const timers = new FakeTimers()
  const c = new SetUp(pprof, 'pprof', undefined, { timers })
  const profile = c.get(CPU)
  await until(() => timers.count === 1, 'the wait')
  await c.stop()
  t.equal((await profile).status, 200)
  t.equal((await c.get(CPU)).status, 200, 'a later one does not wait')
})
