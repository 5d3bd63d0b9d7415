import t from 'tap'
import { OperatorMetrics } from '../../src/operator/metrics.ts'
import type { PeerStatus } from '../../src/peering/peer-status.ts'
import { MetricsRegistry } from '../../src/telemetry/metrics.ts'
import { FakeClock } from '../support/setup.ts'

function statusOf(keyName: string, more: Partial<PeerStatus> = {}): PeerStatus {
  return {
    address: '192.0.2.53:53',
    keyName,
    site: 'east',
    generation: 'v2',
    lastSeenMs: 0,
    lastSeenTimeMs: 0,
    serial: 7,
    isUp: true,
    error: '',
    failures: 0,
    endpoints: 3,
    refused: 0,
    ...more,
  }
}

// The series of one was overwritten by that of the other.
t.test('a nameserver that is asked under two keys is two peers, that come and go', async (t) => {
  const metrics = new OperatorMetrics(new MetricsRegistry())
  let peers = [
    statusOf(''),
    statusOf('one.example.', { isUp: false, serial: undefined }),
    statusOf('two.example.', { endpoints: 5 }),
  ]
  const queue = { depth: 0, running: 0, runs: 0, failures: 0, retries: 0, dropped: 0 }
  const clock = new FakeClock()
  metrics.collectFrom(() => ({ peers, queue, remotes: [] }), clock)
  const series = async (name: string): Promise<string[]> => {
    const text = await metrics.registry.print()
    return text
      .split('\n')
      .filter((line) => line.startsWith(`sextant_operator_peer_${name}{`))
      .map((line) => line.slice(line.indexOf('{')))
  }
  const [at, one, two] = ['', ',key="one.example."', ',key="two.example."'].map(
    (key) => `{peer="192.0.2.53:53"${key}`,
  )
  t.strictSame(await series('up'), [`${at}} 1`, `${one}} 0`, `${two}} 1`])
  t.strictSame(await series('endpoints'), [`${at}} 3`, `${one}} 3`, `${two}} 5`])
  t.strictSame(await series('serial'), [`${at}} 7`, `${two}} 7`])
  const about = 'site="east",generation="v2"} 1'
  t.strictSame(await series('info'), [`${at},${about}`, `${one},${about}`, `${two},${about}`])
  peers = [statusOf('two.example.')]
  t.strictSame(await series('up'), [`${two}} 1`])
})
