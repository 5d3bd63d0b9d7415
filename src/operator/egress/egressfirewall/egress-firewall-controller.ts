import { type Controller, type ControllerEnv, SessionController } from '../../controller.ts'
import { EgressFirewallSession, type EgressFirewallSettings } from './egress-firewall-session.ts'

/** Gives each DNS name of the EgressFirewalls a DNSNameResolver. */
export function createEgressFirewallController(
  env: ControllerEnv,
  settings: EgressFirewallSettings,
): Controller {
  const { registry } = env
  const names = registry.gauge(
    'sextant_egressfirewall_names',
    'DNS names that EgressFirewalls use.',
  )
  const faulty = registry.gauge(
    'sextant_egressfirewall_faulty_objects',
    'EgressFirewalls with a fault in their rules; the log has a line for each.',
  )
  const writes = registry.counter(
    'sextant_egressfirewall_writes_total',
    'DNSNameResolvers that were created and deleted.',
    ['kind'],
  )
  for (const kind of ['create', 'delete']) writes.inc({ kind }, 0)
  let session: EgressFirewallSession | undefined
  registry.onCollect(() => {
    names.set(session?.names ?? 0)
    faulty.set(session?.faults ?? 0)
  })
  return new SessionController(() => {
    session = new EgressFirewallSession(env, settings, (kind) => writes.inc({ kind }))
    return session
  })
}
