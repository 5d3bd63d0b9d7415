import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EventLog } from '../../../src/base/telemetry/event-log.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { probeManifest, recordManifest } from '../../support/manifest.ts'
import { processResources, SetUp } from '../../support/setup.ts'
import { until } from '../../support/until.ts'

const probe = (isHealthy: boolean) => probeManifest('a', '192.0.2.1', isHealthy)

async function start(t: Test, files: Readonly<Record<string, string>>) {
  const directory = t.testdir(files)
  const setUp = new SetUp(kuadrant, `kuadrant {\n manifests ${directory}\n}`, ['k.example.com.'])
  const { item: events, release } = processResources.acquire(EventLog, '', () => {
    return new EventLog(setUp.clock)
  })
  t.teardown(release)
  await setUp.start()
  t.teardown(() => setUp.stop())
  const status = () => setUp.statusReports[0]?.() ?? {}
  return { directory, events, status }
}

const A = {
  'a.yaml': recordManifest('a', '192.0.2.1'),
  'probe.yaml': probe(false),
}

t.test('the status has the zone, and each endpoint that is not served in full', async (t) => {
  const { directory, status } = await start(t, A)
  const { zones = [], endpoints, endpointsOmitted, peers, snapshots } = status()
  t.match(zones, [
    {
      zone: 'k.example.com.',
      directive: 'kuadrant',
      source: directory,
      serial: Number,
      records: 1,
      rrsets: 2,
      conflicts: 0,
      allDown: ['a.k.example.com. A: health and drains are ignored'],
      endpoints: { served: 2, standby: 0, slowStart: 0, down: 1, drained: 0 },
    },
  ])
  t.strictSame(endpoints, [
    {
      zone: 'k.example.com.',
      name: 'a.k.example.com.',
      type: 'A',
      setIdentifier: '',
      targets: ['192.0.2.1'],
      state: 'down',
      detail: 'DNSHealthCheckProbe default/a-192.0.2.1 reports it as unhealthy',
      record: 'default/a',
    },
  ])
  t.strictSame([endpointsOmitted, peers, snapshots], [0, [], []])
  writeFileSync(join(directory, 'probe.yaml'), probe(true))
  await until(() => status().endpoints?.length === 0, 'the address to be up')
  t.match(status().zones?.[0], { allDown: [], endpoints: { served: 2, down: 0 } })
})

t.test('a target that is down and drained is out once', async (t) => {
  const two = `${recordManifest('a', '192.0.2.1')}    - 192.0.2.2\n`
  const { directory } = await start(t, { 'a.yaml': two, 'probe.yaml': probe(false) })
  const folder = t.testdir({ drains: 'address:192.0.2.1\n' })
  const corefile = `kuadrant {\n manifests ${directory}\n drain ${join(folder, 'drains')}\n}`
  const setUp = new SetUp(kuadrant, corefile, ['k.example.com.'])
  await setUp.start()
  t.teardown(() => setUp.stop())
  t.match(setUp.statusReports[0]?.().endpoints, [{ state: 'partly down' }])
})

t.test('each change of an RRset is an event with its cause; a load is one event', async (t) => {
  const files = { ...A, 'b.yaml': recordManifest('b', '192.0.2.2') }
  const { directory, events, status } = await start(t, files)
  t.match(events.after(0, 10), [
    {
      actor: { kind: 'load', name: directory },
      zone: 'k.example.com.',
      serial: status().zones?.[0]?.serial ?? 0,
      text: '2 records',
    },
  ])
  let seen = events.lastId
  const next = async () => {
    await until(() => events.lastId > seen, 'an event')
    const found = events.after(seen, 10)
    seen = events.lastId
    return found
  }
  writeFileSync(join(directory, 'b.yaml'), recordManifest('b', '192.0.2.3'))
  t.match(await next(), [
    {
      actor: { kind: 'record', name: 'default/b' },
      zone: 'k.example.com.',
      serial: status().zones?.[0]?.serial ?? 0,
      name: 'b.k.example.com.',
      type: 'A',
      before: [/^192\.0\.2\.2/],
      after: [/^192\.0\.2\.3/],
    },
  ])
  writeFileSync(join(directory, 'b.yaml'), recordManifest('c', '192.0.2.4'))
  const moved = [...(await next())].sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1))
  t.match(moved, [
    { name: 'b.k.example.com.', before: [/^192\.0\.2\.3/], after: [] },
    { name: 'c.k.example.com.', before: [], after: [/^192\.0\.2\.4/] },
  ])
})

t.test('a change of many RRsets is a bounded number of events', async (t) => {
  const { directory, events } = await start(t, A)
  const many = Array.from({ length: 500 }, (_, i) => recordManifest(`r${i}`, '192.0.2.9'))
  const before = events.lastId
  writeFileSync(join(directory, 'many.yaml'), many.join('---\n'))
  const count = () => {
    const found = events.after(before, 10_000)
    return found.reduce(
      (sum, { text }) => sum + (text === undefined ? 1 : Number.parseInt(text, 10)),
      0,
    )
  }
  await until(() => count() === 500, 'all changes to be counted')
  t.ok(events.after(before, 10_000).length <= 5 * 21, 'few events')
})
