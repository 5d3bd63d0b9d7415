import type { Logger } from '../../base/telemetry/log.ts'
import type { ProbeState } from './probe-state.ts'

/** A change of the health of an address, as a line without its place. */
interface HealthChange {
  readonly health: 'up' | 'down' | 'unknown'
  /** `is down after 3 failures: status 503`. */
  readonly text: string
}

/** Returns what changed with an attempt; undefined = nothing, or a new address is up. */
export function findChange(before: ProbeState, after: ProbeState): HealthChange | undefined {
  const { health, failures, reason, skips } = after
  // An address that was never probed is served like one that works.
  const isNews = skips === 1 && reason !== before.reason
  const isLeftOut = health === 'unknown' && before.health === health && isNews
  if (isLeftOut) return { health, text: `is served, its health is unknown: ${reason}` }
  if (before.health === health || (before.health === 'unknown' && health === 'up')) return undefined
  if (health === 'up') return { health, text: 'is up' }
  return health === 'down'
    ? { health, text: `is down after ${failures} failures: ${reason}` }
    : { health, text: `is served, its health is unknown: ${reason}` }
}

/** Logs a change. `at`: the address and its record. */
export function logChange(log: Logger, at: string, { health, failures, reason }: ProbeState): void {
  if (health === 'up') log.info(`${at} is up`, 'address-up')
  else if (health === 'down')
    log.warning(`${at} is down after ${failures} failures: ${reason}`, 'address-down', {
      failures,
      reason,
    })
  else
    log.warning(`${at} is served, its health is unknown: ${reason}`, 'address-health-unknown', {
      reason,
    })
}
