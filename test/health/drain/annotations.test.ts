import t from 'tap'
import { DRAIN_CHECK_MS } from '../../../src/health/drain/drain-schedule.ts'
import { SlowStart } from '../../../src/health/slow-start.ts'
import { packRecord } from '../../../src/records/pack.ts'
import { StoredRecord } from '../../../src/records/record-source.ts'
import { validateResource } from '../../../src/records/validate/resource.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { TestSource, tableOf } from '../stage.ts'

const HOST = 'a.k.test'
const endpoint = (address: string) => ({
  dnsName: HOST,
  recordType: 'A',
  targets: [address],
  setIdentifier: address,
  providerSpecific: [{ name: 'weight', value: '10' }],
})

/** The record `default/a` with two endpoints. */
function annotated(annotations: Readonly<Record<string, string>>): StoredRecord {
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a', annotations },
    spec: { rootHost: HOST, endpoints: [endpoint('192.0.2.1'), endpoint('192.0.2.2')] },
  })
  if (resource.kind !== 'record') throw new Error(JSON.stringify(resource))
  return new StoredRecord('default/a', packRecord(resource.record))
}

function stage(record: StoredRecord, site = '', sites: readonly (readonly string[])[] = []) {
  const source = new TestSource()
  source.put(record)
  const [clock, timers] = [new FakeClock(), new FakeTimers()]
  const lines: string[] = []
  const info = (line: string): void => void lines.push(line)
  const log = { debug: info, info, warning: info, error: info }
  const env = { clock, timers, log }
  const sitesOf = () => sites
  const table = tableOf(source, { site, sitesOf, ...env })
  const { drains: drained } = table
  const ramp = new SlowStart({ source, table, durationMs: 100_000, ...env })
  const batches: string[] = []
  table.subscribe((keys) => batches.push([...keys].join(' ')))
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(Math.max(0, milliseconds))
  }
  const drainedNow = () => {
    const { endpoints } = drained.drainsOf(source.find('default/a')!)
    return [...endpoints.keys()].filter((i) => endpoints[i]!.size > 0)
  }
  const slowNow = () => ramp.slowStartOf(source.find('default/a')!).map(({ address }) => address)
  return { source, drained, clock, timers, lines, batches, pass, drainedNow, slowNow }
}

t.test('an annotation drains a record, and its removal ends that with slow start', async (t) => {
  const { source, drained, lines, drainedNow, slowNow } = stage(annotated({}))
  t.strictSame(drainedNow(), [])
  t.equal(drained.note(3), '')
  source.put(annotated({ 'sextant.io/drain': 'racks move' }))
  t.strictSame(drainedNow(), [0, 1])
  t.equal(drained.note(3), 'drained: record:default/a by annotation: racks move')
  source.put(annotated({ 'sextant.io/drain': 'racks move', other: 'x' }))
  t.strictSame(lines.splice(0), ['drain begins: record:default/a by annotation: racks move'])
  t.strictSame(slowNow(), [])
  source.put(annotated({}))
  t.strictSame(drainedNow(), [])
  t.strictSame(lines, ['drain ends: record:default/a by annotation: racks move'])
  t.strictSame(slowNow(), ['192.0.2.1', '192.0.2.2'])
  t.equal(drained.note(3), '')
})

t.test('a removed record is drained no longer', async (t) => {
  const { source, drained, lines } = stage(annotated({ 'sextant.io/drain': '' }))
  t.equal(drained.note(3), 'drained: record:default/a by annotation')
  source.remove('default/a')
  t.equal(drained.note(3), '')
  t.match(lines.at(-1), /^drain ends: /)
})

t.test('the time of an annotation ends the drain, by the wall clock', async (t) => {
  const until = new Date(new FakeClock().now() + 60_000).toISOString()
  const record = annotated({ 'sextant.io/drain': '', 'sextant.io/drain-until': until })
  const { source, drainedNow, slowNow, pass, batches, clock, timers } = stage(record)
  t.strictSame(drainedNow(), [0, 1])
  await pass(59_000)
  t.strictSame(drainedNow(), [0, 1])
  t.strictSame(batches.splice(0), [])
  await pass(1000 + DRAIN_CHECK_MS)
  t.strictSame(drainedNow(), [])
  t.strictSame(batches.splice(0)[0], 'default/a')
  t.strictSame(slowNow(), ['192.0.2.1', '192.0.2.2'])
  clock.nowMs -= 30_000
  await timers.advance(DRAIN_CHECK_MS)
  t.strictSame(drainedNow(), [0, 1], 'the clock was set back')
  source.put(annotated({}))
  t.strictSame(drainedNow(), [])
})

t.test('of a merged record, the endpoints of this site alone are drained', async (t) => {
  const record = annotated({ 'sextant.io/drain': '' })
  t.strictSame(stage(record, 'dublin', [['dublin'], ['dublin', 'paris']]).drainedNow(), [0])
  t.strictSame(stage(record, 'dublin', [['paris'], ['dublin']]).drainedNow(), [1])
})
