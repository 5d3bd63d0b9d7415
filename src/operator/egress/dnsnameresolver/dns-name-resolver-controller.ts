import { type AskAddresses, askAddresses } from '../../../client/resolver/ask-addresses.ts'
import { type Controller, type ControllerEnv, SessionController } from '../../controller.ts'
import {
  DnsNameResolverSession,
  type DnsNameResolverSettings,
} from './dns-name-resolver-session.ts'

/** Looks up the names of DNSNameResolvers again, and removes dead addresses. */
export function createDnsNameResolverController(
  env: ControllerEnv,
  settings: DnsNameResolverSettings,
  ask: AskAddresses = askAddresses,
): Controller {
  const { registry } = env
  const names = registry.gauge('sextant_dnsnameresolver_names', 'Names that are looked up.')
  const servers = registry.gauge(
    'sextant_dnsnameresolver_servers',
    'Ready DNS servers that are asked.',
  )
  const lag = registry.gauge(
    'sextant_dnsnameresolver_lag_seconds',
    'How long the lookup that waits longest is overdue.',
  )
  const lookups = registry.counter(
    'sextant_dnsnameresolver_lookups_total',
    'Queries by their results.',
    ['result'],
  )
  for (const result of ['answer', 'nodata', 'failed']) lookups.inc({ result }, 0)
  const removed = registry.counter(
    'sextant_dnsnameresolver_removed_total',
    'Dead addresses and names that were removed from a status.',
    ['what'],
  )
  for (const what of ['addresses', 'names']) removed.inc({ what }, 0)
  let session: DnsNameResolverSession | undefined
  registry.onCollect(() => {
    const facts = session?.facts
    names.set(facts?.names ?? 0)
    servers.set(facts?.servers ?? 0)
    lag.set((facts?.lagMs ?? 0) / 1000)
  })
  const counts = {
    lookup: (result: string) => lookups.inc({ result }),
    removed: (what: string, count: number) => removed.inc({ what }, count),
  }
  return new SessionController(() => {
    session = new DnsNameResolverSession(env, settings, counts, ask)
    return session
  })
}
