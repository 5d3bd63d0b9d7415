import type { Plan } from '../plan/plan.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { isStatusInPlace } from '../status/status.ts'

/**
 * Milliseconds between two writes for one owner: this for each owner of its host, and at least
 * LEAST_MS.
 */
const OWNER_MS = 100
const LEAST_MS = 1000

/**
 * Delays status writes that change only the list of a host's owners. Each owner lists all of them
 * in its status, so a new owner causes one write per owner, and many new owners in sequence cause
 * the square of their number. With the delay one host causes at most ten such writes a second,
 * however many owners it has.
 */
export class StatusWriteThrottle {
  /** By key of the record: the time of its last write. Monotonic. */
  readonly #writtenMs = new Map<string, number>()

  /** How long the writes of `plan` must wait, in milliseconds; 0 = they are due now. */
  waitMs(record: DnsRecordView, { writes }: Plan, nowMs: number): number {
    const [write] = writes
    if (write === undefined) return 0
    const { key, status } = record
    const { domainOwners: owners } = status
    if (writes.length === 1 && write.kind === 'status' && owners !== undefined) {
      const { domainOwners } = write.status
      const isOnlyOwners = isStatusInPlace(record, { ...write.status, domainOwners: owners })
      const count = Array.isArray(domainOwners) ? domainOwners.length : 0
      const lastMs = this.#writtenMs.get(key) ?? Number.NEGATIVE_INFINITY
      const waitMs = lastMs + Math.max(LEAST_MS, OWNER_MS * count) - nowMs
      if (isOnlyOwners && waitMs > 0) return waitMs
    }
    this.#writtenMs.set(key, nowMs)
    return 0
  }

  forget(key: string): void {
    this.#writtenMs.delete(key)
  }
}
