import t from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Random } from '../../src/base/random.ts'
import { MetricsRegistry } from '../../src/base/telemetry/metrics.ts'
import { systemTimers } from '../../src/base/timers.ts'
import { createEgressControllers } from '../../src/cli/egress-controllers.ts'
import { scanOperatorArgs } from '../../src/cli/operator-args.ts'
import { eventRecorder } from '../support/event-recorder.ts'
import { MemoryApi } from '../support/memory-api.ts'
import { recordLog } from '../support/recorded-log.ts'

/** What the operator logs when it makes its controllers. */
function linesOf(...args: readonly string[]): readonly string[] {
  const operator = scanOperatorArgs(args, {})
  if (typeof operator === 'string') throw new Error(operator)
  const { lines, log } = recordLog()
  const base = { clock: systemClock, timers: systemTimers, random: new Random(7), log }
  const env = { ...base, api: new MemoryApi(), namespaces: [] }
  const rest = { registry: new MetricsRegistry(), mayWrite: () => true }
  const { controllers, egress } = operator
  createEgressControllers(controllers, egress, { ...env, ...rest, events: eventRecorder(env) })
  return lines
}

t.test('controllers that allow addresses warn if the networks are unknown', async (t) => {
  const want = [/WARNING.*--cluster-cidr is not set: .*nodes, Pods and Services/]
  for (const names of ['ovn', 'fqdnnetworkpolicy', 'ovn,fqdnnetworkpolicy']) {
    const lines = linesOf('--controllers', names)
    t.match(lines, want)
    t.equal(lines.length, 1)
    t.strictSame(linesOf('--controllers', names, '--cluster-cidr=10.0.0.0/8'), [])
  }
  t.strictSame(linesOf('--controllers', 'dnsrecord,dnsnameresolver,egressfirewall'), [])
})

t.test('--egress-allow is for ovn too', async (t) => {
  const operator = scanOperatorArgs(['--controllers=ovn', '--egress-allow=127.0.0.0/8'], {})
  if (typeof operator === 'string') throw new Error(operator)
  const want = [{ family: 1, bytes: new Uint8Array([127, 0, 0, 0]), bits: 8 }]
  t.strictSame(operator.egress.ovn.allowedNetworks, want)
  t.strictSame(operator.egress.fqdn.allowedNetworks, want)
})
