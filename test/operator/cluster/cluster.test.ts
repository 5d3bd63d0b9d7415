import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { createLogger } from '../../../src/base/telemetry/log.ts'
import { Cluster } from '../../../src/operator/cluster/cluster.ts'
import { ApiDouble, listBody, type Stream, statusBody, turns } from '../../support/api-double.ts'
import { eventRecorder } from '../../support/event-recorder.ts'
import { dnsRecord } from '../../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const PROBE = {
  metadata: {
    name: 'p',
    namespace: 'a',
    uid: 'p',
    resourceVersion: '3',
    labels: { 'kuadrant.io/health-probes-owner': 'app' },
  },
  spec: { address: '192.0.2.1', port: 80, protocol: 'HTTP', path: '/', interval: '60s' },
  status: { healthy: false },
}
const REFUSALS = {
  403: statusBody(403, 'not yet', 'Forbidden'),
  404: statusBody(404, 'the server could not find the requested resource', 'NotFound'),
  503: statusBody(503, 'not all paths are installed', 'ServiceUnavailable'),
} as const

/** Lists are answered in order; what has no more answers hangs. */
async function begin(
  probes: readonly (keyof typeof REFUSALS | 200)[],
): Promise<{ isSynced: boolean; down: readonly string[] }> {
  const api = new ApiDouble()
  const timers = new FakeTimers()
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const env = { api, log, clock: new FakeClock(), timers, random: new Random(1), namespaces: [] }
  const cluster = new Cluster(env, eventRecorder(env))
  cluster.start()
  let isSynced = false
  void cluster.synced().then(() => (isSynced = true))
  let answers = 0
  for (let i = 0; i < 60 && !isSynced; i++) {
    await turns()
    for (const asked of api.asked.splice(0)) {
      if (asked.isWatch) asked.stream()
      else if (asked.path.endsWith('/dnsrecords')) asked.reply(200, listBody('9', [dnsRecord()]))
      else if (asked.path.endsWith('/secrets')) asked.reply(200, listBody('9', []))
      else {
        const status = probes[answers++]
        if (status === 200) asked.reply(200, listBody('9', [PROBE]))
        else if (status !== undefined) asked.reply(status, REFUSALS[status])
      }
    }
    await turns()
    await timers.advance(1000)
  }
  const { down } = cluster.healthOf('a/app')
  cluster.close()
  return { isSynced, down }
}

for (const { name, probes, want } of [
  { name: 'probes that can be read are waited for', probes: [200], want: ['192.0.2.1'] },
  {
    name: 'a server that refuses while it starts is not believed',
    probes: [403, 200],
    want: ['192.0.2.1'],
  },
  {
    name: 'nor is one that does not know their kind yet',
    probes: [404, 503, 404, 200],
    want: ['192.0.2.1'],
  },
  { name: 'a server that is broken is waited for', probes: [503, 503, 503, 503], want: undefined },
  { name: 'without a right to them they are left out', probes: [403, 403, 403, 403], want: [] },
  { name: 'and so they are without their definition', probes: [404, 404, 404, 404], want: [] },
] as const) {
  t.test(name, async (t) => {
    const { isSynced, down } = await begin(probes)
    t.strictSame(isSynced ? down : undefined, want)
  })
}

t.test('records that share a name hear of health and annotations of each other', async (t) => {
  const api = new ApiDouble()
  const timers = new FakeTimers()
  const log = createLogger(
    '',
    () => {},
    () => false,
  )
  const env = { api, log, clock: new FakeClock(), timers, random: new Random(1), namespaces: [] }
  const cluster = new Cluster(env, eventRecorder(env))
  t.teardown(() => cluster.close())
  const lists: Record<string, object[]> = {
    dnsrecords: [dnsRecord(), dnsRecord({ name: 'b' })],
    secrets: [],
    dnshealthcheckprobes: [PROBE],
  }
  const streams = new Map<string, Stream>()
  const answer = async (): Promise<void> => {
    for (let i = 0; i < 5; i++) {
      await turns()
      for (const asked of api.asked.splice(0)) {
        const kind = asked.path.split('/').at(-1)!
        if (asked.isWatch) streams.set(kind, asked.stream())
        else asked.reply(200, listBody('9', lists[kind]!))
      }
      await timers.advance(1000)
    }
  }
  cluster.start()
  await answer()
  await cluster.synced()
  const keys: string[] = []
  cluster.onNames((key) => keys.push(key))
  const news = async (): Promise<string[]> => {
    await answer()
    return [...new Set(keys.splice(0))]
  }
  const metadata = { resourceVersion: '11' }
  streams.get('dnshealthcheckprobes')!.event('MODIFIED', {
    ...{ ...PROBE, metadata: { ...PROBE.metadata, ...metadata } },
    status: { healthy: true },
  })
  t.strictSame(await news(), ['a/b'], 'an address of a/app is up')
  const annotations = { 'sextant.io/drain': '' }
  const drained = dnsRecord({ metadata: { ...metadata, annotations } })
  streams.get('dnsrecords')!.event('MODIFIED', drained)
  t.strictSame(await news(), ['a/b'], 'a/app is drained')
})
