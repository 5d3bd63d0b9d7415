import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import type { PeerStatus } from '../../../src/peering/peer-status.ts'
import { measureDisputes, measurePeers } from '../../../src/publish/peers/peer-metrics.ts'

const STATUS: PeerStatus = {
  address: '192.0.2.53:53',
  keyName: '',
  site: '',
  generation: 'v2',
  lastSeenMs: 0,
  lastSeenTimeMs: 0,
  serial: 7,
  isUp: true,
  error: '',
  failures: 0,
  endpoints: 3,
  refused: 0,
}

t.test('the series of a peer have its site, once it is known', async (t) => {
  const metrics = new MetricsRegistry()
  let peers: readonly PeerStatus[] = [STATUS]
  const refused = new Map([['192.0.2.53:53', 2]])
  const stops = [
    measurePeers(metrics, () => peers),
    measureDisputes(
      metrics,
      'k.example.com.',
      () => ({ unserved: 0, refused }),
      () => peers,
    ),
  ]
  const series = async (name: string): Promise<string[]> => {
    const lines = (await metrics.print()).split('\n')
    return lines.filter((line) => line.startsWith(`sextant_peer_${name}{`))
  }
  for (const [site, label] of [
    ['', ''],
    ['eu', ',site="eu"'],
    ['eu,us', ',site="eu,us"'],
  ] as const) {
    peers = [{ ...STATUS, site }]
    t.strictSame(await series('up'), [`sextant_peer_up{peer="192.0.2.53:53"${label}} 1`])
    const denied = `sextant_peer_denied{zones="k.example.com.",peer="192.0.2.53:53"${label}} 2`
    t.strictSame(await series('denied'), [denied])
  }
  for (const stop of stops) stop()
  t.strictSame(await series('up'), [])
  t.strictSame(await series('denied'), [])
})
