import { type Controller, type ControllerMeans, SessionController } from '../../controller.ts'
import { OvnMetrics } from './ovn-metrics.ts'
import { OvnSession } from './ovn-session.ts'
import type { OvnSettings } from './ovn-settings.ts'

/** Publishes the addresses of DNSNameResolvers as address sets of OVN Northbound. */
export function createOvnController(means: ControllerMeans, settings: OvnSettings): Controller {
  let session: OvnSession | undefined
  const metrics = new OvnMetrics(means.registry, () => session)
  return new SessionController(() => {
    session = new OvnSession(means, settings, metrics)
    return session
  })
}
