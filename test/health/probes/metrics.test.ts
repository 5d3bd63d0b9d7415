import t from 'tap'
import { MetricsRegistry } from '../../../src/base/telemetry/metrics.ts'
import { attemptCounter, measureProbing } from '../../../src/health/probes/metrics.ts'
import type { Probe } from '../../../src/health/probes/probe.ts'
import type { ProbeRunner } from '../../../src/health/probes/probe-runner.ts'
import type { ProbeHealth, ProbeState } from '../../../src/health/probes/probe-state.ts'

async function stage(healths: readonly (readonly [address: string, health: ProbeHealth])[]) {
  const metrics = new MetricsRegistry()
  const states = healths.map(([address, health]) => ({
    probe: { id: `ns/${address}`, address, hostname: '' } as Probe,
    state: { health } as ProbeState,
  }))
  const runner = { states: () => states, overdueMs: 0 } as unknown as ProbeRunner
  const stop = measureProbing(metrics, 'src', { runner, recordOf: () => 'ns/app' })
  const series = async (): Promise<string[]> => {
    const lines = (await metrics.print()).split('\n')
    return lines.filter((line) => line.startsWith('sextant_probe_down{'))
  }
  return { metrics, series, stop, states }
}

const line = (address: string, value: 0 | 1): string =>
  `sextant_probe_down{source="src",record="ns/app",address="${address}"} ${value}`

t.test('every probed address has a series, whatever its state', async (t) => {
  const { series, stop, states } = await stage([
    ['192.0.2.1', 'up'],
    ['192.0.2.2', 'down'],
    ['192.0.2.3', 'unknown'],
  ])
  const want = [line('192.0.2.1', 0), line('192.0.2.2', 1), line('192.0.2.3', 0)]
  t.strictSame((await series()).sort(), want)
  Object.assign(states[1]!.state, { health: 'up' })
  t.strictSame((await series()).sort(), want.with(1, line('192.0.2.2', 0)))
  states.pop()
  t.equal((await series()).length, 2, 'a probe that is gone')
  stop()
  t.strictSame(await series(), [])
})

t.test('an address of two probes is down if one finds it so', async (t) => {
  for (const healths of [
    ['up', 'down'],
    ['down', 'up'],
  ] as const) {
    const { series } = await stage(healths.map((health) => ['192.0.2.1', health]))
    t.strictSame(await series(), [line('192.0.2.1', 1)])
  }
})

t.test('the number of series is bounded, and those that are down come first', async (t) => {
  const up = Array.from({ length: 10_100 }, (_, i) => [`2001:db8::${i}`, 'up'] as const)
  const { series } = await stage([...up, ['192.0.2.1', 'down']])
  const all = await series()
  t.equal(all.length, 10_000)
  t.ok(all.includes(line('192.0.2.1', 1)))
})

t.test('each outcome has a series before the first attempt', async (t) => {
  const metrics = new MetricsRegistry()
  attemptCounter(metrics, 'src')
  for (const outcome of ['healthy', 'unhealthy', 'skipped']) {
    t.match(await metrics.print(), `looks_total{source="src",outcome="${outcome}"} 0`)
  }
})
