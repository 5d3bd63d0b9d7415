import t, { type Test } from 'tap'
import { Random } from '../../../src/base/random.ts'
import { DrainColumn } from '../../../src/health/drain/drain-column.ts'
import { CLUSTER_ONLY, DRAIN_CHECK_MS } from '../../../src/health/drain/drain-schedule.ts'
import { KubernetesSource } from '../../../src/sources/kubernetes/kubernetes-source.ts'
import { ApiDouble, type Asked, listBody, statusBody, turns } from '../../support/api-double.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const NAMESPACES = '/api/v1/namespaces'
const RECORDS = '/apis/kuadrant.io/v1alpha1/dnsrecords'
const PROBES = '/apis/kuadrant.io/v1alpha1/dnshealthcheckprobes'
const REASON = { 'sextant.io/drain': 'racks move' }

function record(namespace: string): object {
  const host = `${namespace}.k.example.com`
  return {
    metadata: {
      name: 'a',
      namespace,
      labels: { 'kuadrant.io/coredns-zone-name': 'k.example.com' },
    },
    spec: {
      rootHost: host,
      endpoints: [{ dnsName: host, recordType: 'A', targets: ['192.0.2.1'] }],
    },
  }
}

let version = 100

function space(name: string, annotations: object = {}): object {
  return { metadata: { name, resourceVersion: `${++version}`, annotations } }
}

function stage(t: Test, namespaces: readonly string[] = []) {
  const api = new ApiDouble()
  const clock = new FakeClock()
  const timers = new FakeTimers()
  const { lines, log } = recordLog()
  const random = new Random(1)
  const parts = { log, clock, timers }
  const source = new KubernetesSource({ ...parts, api, namespaces, random, readsNamespaces: true })
  t.teardown(() => source.close())
  let isSynced = false
  void source.synced().then(() => {
    isSynced = true
  })
  void source.start()
  const asked = async (path: string): Promise<Asked> => {
    await turns()
    const index = api.asked.findIndex((one) => one.path === path)
    const [found] = index === -1 ? [] : api.asked.splice(index, 1)
    if (found === undefined) throw new Error(`no request for ${path}`)
    return found
  }
  const listed = async (records: readonly string[]): Promise<void> => {
    ;(await asked(RECORDS)).reply(200, listBody('50', records.map(record)))
    ;(await asked(PROBES)).reply(200, listBody('50', []))
  }
  /** The namespaces whose records are drained. */
  const drained = () => {
    const feeds = source.drainFeeds
    const changed: string[] = []
    const onChange = (keys: ReadonlySet<string>): void => void changed.push([...keys].join(' '))
    const options = { source, file: undefined, feeds, site: '', onChange }
    const health = new DrainColumn({ ...options, sitesOf: () => [], ...parts })
    const followed = () => {
      const keys = [...source.records()].filter((one) => health.drainsOf(one).endpoints.length > 0)
      return keys.map(({ key }) => key.split('/')[0]).join(' ')
    }
    return { health, changed, followed }
  }
  const pass = async (milliseconds: number): Promise<void> => {
    clock.pass(milliseconds)
    await timers.advance(milliseconds)
    await turns()
  }
  /** Events are applied in batches. */
  const heard = async (): Promise<void> => {
    await turns()
    await pass(10)
  }
  return { source, asked, listed, drained, pass, heard, clock, lines, isSynced: () => isSynced }
}

t.test('the annotations of a Namespace drain its records', async (t) => {
  const { source, asked, listed, drained, heard, lines, isSynced } = stage(t)
  await listed(['team', 'team2'])
  await turns()
  t.notOk(isSynced(), 'records are not served before the Namespaces are known')
  t.match(source.unreadyReason(), /^records are not read yet/)
  const list = await asked(NAMESPACES)
  list.reply(200, listBody('50', [space('team', REASON), space('team2')]))
  await turns()
  t.ok(isSynced())
  const { health, changed, followed } = drained()
  t.equal(followed(), 'team')
  t.strictSame(changed.splice(0), ['team/a'], 'at the start')
  t.equal(health.note(3), 'drained: record:team/* by annotation of Namespace team: racks move')
  t.match(health.unfiled, [{ actor: 'annotation of Namespace team' }])
  const stream = (await asked(NAMESPACES)).stream()
  stream.event('MODIFIED', space('team2', { 'sextant.io/drain': '' }))
  await heard()
  t.equal(followed(), 'team team2')
  stream.event('MODIFIED', space('team'))
  await heard()
  t.equal(followed(), 'team2')
  stream.event('DELETED', space('team2', { 'sextant.io/drain': '' }))
  await heard()
  t.equal(followed(), '')
  t.strictSame(changed, ['team2/a', 'team/a', 'team2/a'])
  const team = 'record:team/* by annotation of Namespace team: racks move'
  const team2 = 'record:team2/* by annotation of Namespace team2'
  const said = lines.filter((line) => line.includes('drain ')).map((line) => line.slice(7))
  const begins = [team, team2].map((one) => `drain begins: ${one}; ${CLUSTER_ONLY}`)
  t.strictSame(said, [...begins, `drain ends: ${team}`, `drain ends: ${team2}`])
})

t.test('the drain of a Namespace ends at its time', async (t) => {
  const { asked, listed, drained, pass, clock } = stage(t)
  await listed(['team'])
  const until = new Date(clock.now() + 60_000).toISOString()
  const spaces = [space('team', { ...REASON, 'sextant.io/drain-until': until })]
  ;(await asked(NAMESPACES)).reply(200, listBody('50', spaces))
  await turns()
  const { followed } = drained()
  t.equal(followed(), 'team')
  await pass(59_000)
  t.equal(followed(), 'team')
  await pass(1000 + DRAIN_CHECK_MS)
  t.equal(followed(), '')
})

t.test('invalid annotations leave the last valid state', async (t) => {
  const { asked, listed, drained, heard, lines } = stage(t)
  await listed(['new', 'team'])
  const invalid = { ...REASON, 'sextant.io/drain-until': 'noon' }
  const spaces = [space('new', invalid), space('team', REASON)]
  ;(await asked(NAMESPACES)).reply(200, listBody('50', spaces))
  await turns()
  const { health, followed } = drained()
  t.equal(followed(), 'team')
  const stream = (await asked(NAMESPACES)).stream()
  stream.event('MODIFIED', space('team', invalid))
  stream.event('MODIFIED', space('team', { ...invalid, other: 'x' }))
  await heard()
  t.equal(followed(), 'team')
  const place = String.raw`metadata\.annotations\.sextant\.io/drain-until: .* must be a time, .* got "noon"`
  const warnings = lines.filter((line) => line.startsWith('[WARNING]'))
  t.match(warnings, [
    new RegExp(`Namespace new: ${place}; it is not drained$`),
    new RegExp(`Namespace team: ${place}; its last valid drain is kept$`),
  ])
  t.equal(warnings.length, 2, 'each is logged once')
  t.match(health.problemGroups(), [
    { kind: 'drain', problems: [{ place: 'kubernetes', reason: /^Namespace new: / }] },
    { kind: 'drain', problems: [{ object: 'Namespace team', reason: /^Namespace team: / }] },
  ])
  stream.event('MODIFIED', space('team', { 'sextant.io/drain-until': '2030-01-01T00:00:00Z' }))
  await heard()
  t.match(lines.at(-1), /has no effect without sextant\.io\/drain; its last valid drain is kept$/)
  stream.event('MODIFIED', space('team'))
  stream.event('MODIFIED', space('new'))
  await heard()
  t.equal(followed(), '')
  t.equal(health.note(3), '')
  t.strictSame(health.problemGroups(), [])
})

t.test('without the right to read Namespaces, records are served', async (t) => {
  const { source, asked, listed, lines, isSynced, drained, pass } = stage(t)
  await listed(['team'])
  ;(await asked(NAMESPACES)).reply(403, statusBody(403, 'no way'))
  await turns()
  t.ok(isSynced())
  const note = /^namespaces: 403 no way; this account needs get, list and watch of namespaces$/
  t.match(source.note(), note)
  t.match(lines.join('\n'), /namespaces: 403 no way; this account needs .*; retrying/)
  const { followed } = drained()
  t.equal(followed(), '')
  await pass(15_001)
  ;(await asked(NAMESPACES)).reply(200, listBody('50', [space('team', REASON)]))
  await turns()
  t.equal(followed(), 'team', 'the right was granted later')
})

t.test(
  'Namespaces that are not read have no effect, and neither have those that are gone',
  async (t) => {
    const { asked, listed, drained, heard, pass } = stage(t, ['team'])
    await t.rejects(listed([]), 'the records of one namespace are asked for')
    const scope = (plural: string) => `/apis/kuadrant.io/v1alpha1/namespaces/team/${plural}`
    ;(await asked(scope('dnsrecords'))).reply(200, listBody('50', [record('team')]))
    ;(await asked(scope('dnshealthcheckprobes'))).reply(200, listBody('50', []))
    ;(await asked(NAMESPACES)).reply(
      200,
      listBody('50', [space('x', REASON), space('team', REASON)]),
    )
    await turns()
    const { health, followed } = drained()
    t.strictSame(
      health.unfiled.map(({ selector }) => selector.text),
      ['record:team/*'],
    )
    const stream = (await asked(NAMESPACES)).stream()
    stream.event('ERROR', statusBody(410, 'too old'))
    await heard()
    await pass(15_001)
    ;(await asked(NAMESPACES)).reply(200, listBody('60', []))
    await turns()
    t.equal(followed(), '')
  },
)
