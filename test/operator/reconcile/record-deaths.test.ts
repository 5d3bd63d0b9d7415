import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { operatorDeathRules, RecordDeaths } from '../../../src/operator/reconcile/record-deaths.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock } from '../../support/setup.ts'
import { EAST, HOUR_MS, KEY, OperatorFixture } from './stage.ts'

const PROBING = { allowsInsecureCertificates: false, allowed: [] }
const CHECK = { protocol: 'HTTP', port: 80, interval: '10s', failureThreshold: 3 }

function stage(isProbing = true, probesPeers = true) {
  const fixture = new OperatorFixture()
  const { log, lines } = recordLog()
  const rules = operatorDeathRules({
    probing: isProbing ? PROBING : undefined,
    probesPeers,
    silentMs: 24 * HOUR_MS,
    quorum: 0,
    holdDownMs: 0,
  })
  fixture.deaths = new RecordDeaths({ site: 'here', rules, clock: fixture.clock, log })
  fixture.start()
  const put = (spec: ApiObject, name = 'app') => fixture.cluster.put(dnsRecord({ name, spec }))
  const logged = async (key = KEY): Promise<readonly string[]> => {
    await fixture.reconciler.reconcile(key)
    return lines.splice(0)
  }
  return { fixture, put, logged }
}

t.test('each host is logged once a peer was heard, and when the reasons change', async (t) => {
  const { fixture, put, logged } = stage()
  put({ healthCheck: CHECK })
  t.strictSame(await logged(), [], 'no peer was heard')
  fixture.say(EAST, 'east', ['192.0.2.2'])
  const removed = (site: string, of = 2): string =>
    `[INFO] if ${site} dies: k.example.com: 1 of ${of} addresses is removed within 60 s`
  t.strictSame(await logged(), [removed('east'), removed('here')])
  t.strictSame(await logged(), [])
  fixture.say(EAST, 'east', ['192.0.2.2', '192.0.2.3'])
  t.strictSame(await logged(), [], 'only the number of addresses changed')
  put({})
  t.strictSame(await logged(), [
    `[INFO] if east dies: k.example.com: 2 of 3 addresses are kept for 24 h: no health check`,
    `[INFO] if here dies: k.example.com: 192.0.2.1 is kept for 24 h: no health check`,
  ])
})

for (const [flag, ...flags] of [
  ['enable-probes', false, true],
  ['probe-peers', true, false],
] as const) {
  t.test(`traffic that a flag keeps is a warning: ${flag}`, async (t) => {
    const { fixture, put, logged } = stage(...flags)
    put({ healthCheck: CHECK })
    fixture.say(EAST, 'east', ['192.0.2.2'])
    const kept = (site: string, address: string): string =>
      `[WARNING] if ${site} dies: k.example.com: ${address} is kept for 24 h: ${flag} is false`
    t.strictSame(await logged(), [kept('east', '192.0.2.2'), kept('here', '192.0.2.1')])
  })
}

t.test('all records of a host count', async (t) => {
  const { fixture, put, logged } = stage()
  const at = (...targets: string[]) => {
    return [{ dnsName: 'k.example.com', recordType: 'A', recordTTL: 60, targets }]
  }
  put({ endpoints: at('192.0.2.1') })
  put({ endpoints: at('192.0.2.3', '192.0.2.4'), healthCheck: CHECK }, 'other')
  fixture.say(EAST, 'east', ['192.0.2.2'])
  const lines = (theirs: number, ours: number, span: string): readonly string[] => {
    const total = theirs + ours
    return [
      `[INFO] if east dies: k.example.com: 1 of ${total} addresses is removed within ${span}`,
      `[INFO] if here dies: k.example.com: ${ours} of ${total} addresses are removed within ${span}`,
    ]
  }
  t.strictSame(await logged(), lines(1, 3, '60 s'), 'the check of the other record holds')
  t.strictSame(await logged('a/other'), [], 'one line per site and host')
  const slower = { ...CHECK, interval: '20s' }
  put({ endpoints: at('192.0.2.1'), healthCheck: slower })
  t.strictSame(await logged('a/other'), lines(1, 3, '110 s'), 'that of the first one')
  fixture.cluster.markDeleted('a/other')
  await logged('a/other')
  t.strictSame(await logged(), [], 'the other record is gone: the reasons are the same')
  for (const name of ['app', 'local-app', 'merged-app']) fixture.cluster.records.delete(`a/${name}`)
  await logged()
  put({ endpoints: at('192.0.2.1') })
  t.equal((await logged()).length, 2, 'a new record of the host is logged')
})

t.test('the number of lines is bounded', async (t) => {
  const { fixture, put, logged } = stage()
  fixture.say(EAST, 'east', [])
  const logOf = (name: string): Promise<readonly string[]> => {
    const rootHost = `${name}.k.example.com`
    const endpoint = { dnsName: rootHost, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }
    put({ rootHost, endpoints: [endpoint] }, name)
    return logged(`a/${name}`)
  }
  const ofHost = (name: string): string => `if here dies: ${name}.k.example.com: `
  const first: string[] = []
  for (let i = 0; i < 45; i++) first.push(...(await logOf(`r${i}`)))
  t.equal(first.length, 21)
  t.equal(
    first.at(-1),
    '[INFO] more lines about the death of sites follow when their hosts are reconciled again',
  )
  const later: string[] = []
  for (let round = 0; round < 2; round++) {
    fixture.clock.pass(60_000)
    for (let i = 0; i < 45; i++) later.push(...(await logged(`a/r${i}`)))
  }
  for (let i = 0; i < 45; i++) {
    const lines = [...first, ...later].filter((line) => line.includes(ofHost(`r${i}`)))
    t.equal(lines.length, 1, `r${i} is logged once`)
  }
  t.equal(later.length, 26)
})

/** Deaths of hosts that this site and `east` have, without a reconciler. */
function hostDeaths() {
  const clock = new FakeClock()
  const { log, lines } = recordLog()
  const settings = { probing: PROBING, probesPeers: true, silentMs: HOUR_MS, quorum: 0 }
  const rules = operatorDeathRules({ ...settings, holdDownMs: 0 })
  const deaths = new RecordDeaths({ site: 'here', rules, clock, log })
  const note = (object: ApiObject): void => {
    const record = new DnsRecordView(object)
    const { resource, rootHost } = record
    if (resource.kind !== 'record') throw new Error('invalid record')
    const records = () => [{ record, content: resource.record }]
    deaths.note({ record, rootHost }, { sites: ['east'], isHeard: true, siteStates: [], records })
  }
  return { clock, lines, note }
}

t.test('that more lines follow is logged once a minute at most', async (t) => {
  const { clock, lines, note } = hostDeaths()
  const hosts = Array.from({ length: 150 }, (_, i) => {
    const host = `r${i}.k.example.com`
    const endpoint = { dnsName: host, recordType: 'A', recordTTL: 60, targets: ['192.0.2.1'] }
    return dnsRecord({ name: `r${i}`, spec: { rootHost: host, endpoints: [endpoint] } })
  })
  const startMs = clock.monotonic()
  note(hosts[0]!)
  const times: number[] = []
  for (const seconds of [59, 60, 61, 90, 119, 120, 180, 240]) {
    clock.pass(startMs + seconds * 1000 - clock.monotonic())
    for (const host of hosts) note(host)
    const more = lines.splice(0).filter((line) => line.includes('more lines'))
    times.push(...more.map(() => seconds))
  }
  t.strictSame(times, [59, 119, 180, 240])
})

t.test('an authoritative record beside an ordinary one of its host is logged once', (t) => {
  const { lines, note } = hostDeaths()
  const labels = { 'kuadrant.io/authoritative-record': 'true' }
  const objects = [
    dnsRecord({ name: 'ordinary', spec: { healthCheck: CHECK } }),
    dnsRecord({ name: 'authoritative', metadata: { labels } }),
  ]
  for (const object of [...objects, ...objects, ...objects]) note(object)
  t.equal(lines.length, 2, lines.join('; '))
  t.end()
})
