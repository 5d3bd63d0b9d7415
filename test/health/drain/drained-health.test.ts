import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { DRAIN_CHECK_MS, DrainFile } from '../../../src/health/drain/drain-file.ts'
import { DrainedHealth } from '../../../src/health/drain/drained-health.ts'
import { SlowStart } from '../../../src/health/slow-start.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { recordOf, type TestRecord, TestSource } from '../stage.ts'

const DURATION_MS = 100_000
const note = (): void => {}
const log = { debug: note, info: note, warning: note, error: note }

function stage(path: string, ...records: readonly TestRecord[]) {
  const source = new TestSource()
  source.put(...records)
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const file = new DrainFile({ path, clock, timers, log })
  /** Keys of the records whose drains were computed. */
  const computed: string[] = []
  const sitesOf = ({ key }: { readonly key: string }) => {
    computed.push(key)
    return []
  }
  const means = { clock, timers, log }
  const site = ''
  const drained = new DrainedHealth({
    source,
    health: source.health,
    file,
    site,
    sitesOf,
    ...means,
  })
  const ramp = new SlowStart({
    source,
    health: drained,
    durationMs: DURATION_MS,
    clock,
    timers,
    log,
  })
  const batches: string[] = []
  ramp.subscribe((keys) => batches.push([...keys].sort().join(' ')))
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
  }
  const put = async (text: string): Promise<void> => {
    writeFileSync(path, text)
    await pass(2 * DRAIN_CHECK_MS)
  }
  /** Indexes of the drained endpoints of a record. */
  const drainedIn = (key: string) => {
    const { endpoints } = ramp.drainsOf(source.find(key)!)
    return [...endpoints.keys()].filter((i) => endpoints[i]!.size > 0)
  }
  const slowIn = (key: string) => ramp.slowStartOf(source.find(key)!)
  return { source, drained, file, batches, pass, put, drainedIn, slowIn, ramp, computed }
}

const a = recordOf('a', ['192.0.2.1=10', '192.0.2.2=10'])
const b = recordOf('b', ['192.0.2.1=10', '192.0.2.3=10'])
const c = recordOf('c', ['192.0.2.4=10'])

t.test('only records with selected endpoints change', async (t) => {
  const path = join(t.testdir({}), 'drains')
  const { put, batches, drainedIn, drained } = stage(path, a, b, c)
  t.strictSame(drainedIn('default/a'), [])
  await put('address:192.0.2.1 by=ops reason=racks\nsite:nowhere\n')
  t.strictSame(batches.splice(0), ['default/a default/b'])
  t.strictSame(drainedIn('default/a'), [0])
  t.equal(drained.note(3), 'drained: address:192.0.2.1 by ops: racks, site:nowhere')
  await put('address:192.0.2.1 by=ops reason=racks\nhost:c.k.test\n')
  t.strictSame(batches.splice(0), ['default/c'])
  await put('host:c.k.test\nhost:b.k.test\nnonsense')
  t.strictSame(batches.splice(0), [], 'an invalid file changes nothing')
  t.match(drained.note(1), /^drained: address:.* and 1 more; drain file: .*drains:3: "nonsense"/)
})

t.test('a drain costs nothing for records that another drain selects', async (t) => {
  const path = join(t.testdir({ drains: 'id:192.0.2.1\n' }), 'drains')
  const { put, batches, computed } = stage(path, a, b, c)
  computed.length = 0
  await put('id:192.0.2.1\naddress:192.0.2.4\n')
  await put('id:192.0.2.1\n')
  t.strictSame(batches, ['default/c', 'default/c'])
  t.strictSame(new Set(computed), new Set(['default/c']))
})

t.test('drains follow the records', async (t) => {
  const path = join(t.testdir({ drains: 'address:192.0.2.3\n' }), 'drains')
  const { source, drainedIn, put, batches } = stage(path, a)
  source.put(b)
  t.strictSame(drainedIn('default/b'), [1])
  source.put(recordOf('b', ['192.0.2.3=10', '192.0.2.5=10']))
  t.strictSame(drainedIn('default/b'), [0])
  source.put(recordOf('b', ['192.0.2.5=10']))
  source.remove('default/a')
  await put('')
  t.strictSame(batches, [], 'nothing that is left was drained')
})

t.test('an endpoint returns through slow start', async (t) => {
  const path = join(t.testdir({}), 'drains')
  const { put, pass, slowIn, batches } = stage(path, a)
  await put('id:192.0.2.1\n')
  t.strictSame(slowIn('default/a'), [])
  await put('')
  t.strictSame(slowIn('default/a'), [{ address: '192.0.2.1', units: 1 }])
  t.strictSame(batches, ['default/a', 'default/a'])
  await pass(DURATION_MS / 2)
  t.equal(slowIn('default/a')[0]!.units, 11)
  await pass(DURATION_MS)
  t.strictSame(slowIn('default/a'), [])
})

t.test(
  'expiry brings an endpoint back through slow start, also of a drain from before the start',
  async (t) => {
    const until = new Date(new FakeClock().now() + 60_000).toISOString()
    const path = join(t.testdir({ drains: `address:192.0.2.1 until=${until}\n` }), 'drains')
    const { pass, slowIn, drainedIn } = stage(path, a, b)
    t.strictSame(drainedIn('default/b'), [0])
    await pass(60_000)
    t.strictSame(drainedIn('default/b'), [])
    for (const key of ['default/a', 'default/b']) {
      t.strictSame(slowIn(key), [{ address: '192.0.2.1', units: 1 }])
    }
  },
)

t.test('a change of the reason changes no answer', async (t) => {
  const path = join(t.testdir({ drains: 'id:192.0.2.1\n' }), 'drains')
  const { put, slowIn, drainedIn } = stage(path, a)
  await put('id:192.0.2.1 reason=longer\n')
  t.strictSame(drainedIn('default/a'), [0])
  t.strictSame(slowIn('default/a'), [])
})
