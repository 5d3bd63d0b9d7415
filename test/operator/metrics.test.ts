import t from 'tap'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import { type GroupStatus, OperatorMetrics } from '../../src/operator/metrics.ts'
import type { PeerStatus } from '../../src/peering/peer-status.ts'
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

const QUEUE = { depth: 0, running: 0, runs: 0, failures: 0, retries: 0, dropped: 0 }

// The series of one was overwritten by that of the other.
t.test('a nameserver that is asked under two keys is two peers, that come and go', async (t) => {
  const metrics = new OperatorMetrics(new MetricsRegistry())
  let peers = [
    statusOf(''),
    statusOf('one.example.', { isUp: false, serial: undefined }),
    statusOf('two.example.', { endpoints: 5 }),
  ]
  const clock = new FakeClock()
  metrics.collectFrom(
    () => ({ peers, queue: QUEUE, remotes: [], siteFaults: 0, groups: [] }),
    clock,
  )
  const series = async (name: string): Promise<string[]> => {
    const text = await metrics.registry.print()
    return text
      .split('\n')
      .filter((line) => line.startsWith(`sextant_operator_peer_${name}{`))
      .map((line) => line.slice(line.indexOf('{')))
  }
  const [at, one, two] = ['', ',key="one.example."', ',key="two.example."'].map(
    (key) => `{peer="192.0.2.53:53"${key},site="east"`,
  )
  t.strictSame(await series('up'), [`${at}} 1`, `${one}} 0`, `${two}} 1`])
  t.strictSame(await series('endpoints'), [`${at}} 3`, `${one}} 3`, `${two}} 5`])
  t.strictSame(await series('serial'), [`${at}} 7`, `${two}} 7`])
  const about = 'generation="v2"} 1'
  t.strictSame(await series('info'), [`${at},${about}`, `${one},${about}`, `${two},${about}`])
  peers = [statusOf('two.example.')]
  t.strictSame(await series('up'), [`${two}} 1`])
})

t.test('the worst lookup of a zone counts, and an unknown group is active', async (t) => {
  const metrics = new OperatorMetrics(new MetricsRegistry())
  const lookup = (zone: string, groups: readonly string[] | undefined, fault = ''): GroupStatus => {
    return { zone, groups, fault }
  }
  let groups = [
    lookup('a.example.', ['g1']),
    lookup('b.example.', ['g2'], 'no answer'),
    lookup('b.example.', ['g1']),
    lookup('c.example.', undefined),
    lookup('d.example.', ['g2']),
    lookup('d.example.', ['g1']),
  ]
  const read = () => ({ peers: [], queue: QUEUE, remotes: [], siteFaults: 0, groups })
  metrics.collectFrom(read, new FakeClock(), 'g1')
  const series = async (): Promise<string[]> => {
    const lines = (await metrics.registry.print()).split('\n')
    return lines
      .filter((line) => /^sextant_operator_(active_groups_up|group_active)\{/.test(line))
      .map((line) => line.slice('sextant_operator_'.length))
      .sort()
  }
  t.strictSame(await series(), [
    'active_groups_up{zone="a.example."} 1',
    'active_groups_up{zone="b.example."} 0',
    'active_groups_up{zone="c.example."} 0',
    'active_groups_up{zone="d.example."} 1',
    'group_active{zone="a.example.",group="g1"} 1',
    'group_active{zone="b.example.",group="g1"} 0',
    'group_active{zone="c.example.",group="g1"} 1',
    'group_active{zone="d.example.",group="g1"} 0',
  ])
  groups = []
  t.strictSame(await series(), [], 'zones come and go')
})
