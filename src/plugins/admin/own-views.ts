import { InputError } from '../../base/errors.ts'
import type { AdminSite } from '../../plugin/admin.ts'
import type { FleetAnswer } from '../../plugin/admin-fleet.ts'

/** The shortest history. */
export const TRAFFIC_PATH = '/v1/traffic?period=10m'

/** Returns the views of this server that its fleet shows, in the form in which other servers reply with them. */
export function ownViews(
  site: Pick<AdminSite, 'status' | 'drains' | 'traffic'>,
): (path: string) => Promise<FleetAnswer> {
  const views: Readonly<Record<string, () => unknown>> = {
    '/v1/status': () => site.status(),
    '/v1/drains': () => site.drains.list(),
    [TRAFFIC_PATH]: () => site.traffic()?.report({ period: '10m' }),
  }
  return async (path) => {
    const view = views[path]
    if (view === undefined) return { kind: 'fault', status: 404, detail: `${path} is not known` }
    try {
      return { kind: 'reply', json: view() }
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return { kind: 'fault', status: 400, detail: error.print() }
    }
  }
}
