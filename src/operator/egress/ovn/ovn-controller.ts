import { type Controller, type ControllerEnv, SessionController } from '../../controller.ts'
import { OvnMetrics } from './ovn-metrics.ts'
import { OvnSession } from './ovn-session.ts'
import type { OvnSettings } from './ovn-settings.ts'

/** Publishes the addresses of DNSNameResolvers as address sets of OVN Northbound. */
export function createOvnController(env: ControllerEnv, settings: OvnSettings): Controller {
  let session: OvnSession | undefined
  const metrics = new OvnMetrics(env.registry, () => session)
  return new SessionController(() => {
    session = new OvnSession(env, settings, metrics)
    return session
  })
}
