import type { ApiObject } from '../../kube/api.ts'
import { mappingOf } from '../object.ts'
import type { Plan } from '../plan.ts'
import { isStatusInPlace } from '../status.ts'

/** Time between two writes of one owner, for each owner of its host; and at least. */
const OWNER_MS = 100
const LEAST_MS = 1000

/**
 * Holds back what is only about who else owns a host. Each owner has the ids of all of them in its status, so that one more
 * is a write for each: of many that come one after the other, their square. Held back, one host costs ten writes a
 * second however many own it.
 */
export class StatusWriteThrottle {
  /** By key of the record: when it was last written, and when what is held back is due. Monotonic. */
  readonly #writtenMs = new Map<string, number>()

  /** How long the writes of `plan` are to wait, in milliseconds; 0 = they are due. */
  judge(key: string, object: ApiObject, { writes }: Plan, nowMs: number): number {
    const [write] = writes
    if (write === undefined) return 0
    const isOnlyOwners = writes.length === 1 && write.kind === 'status'
    const owners = mappingOf(object, 'status').domainOwners
    if (isOnlyOwners && owners !== undefined) {
      const { domainOwners } = write.status
      const isSameElse = isStatusInPlace(object, { ...write.status, domainOwners: owners })
      const count = Array.isArray(domainOwners) ? domainOwners.length : 0
      const lastMs = this.#writtenMs.get(key) ?? Number.NEGATIVE_INFINITY
      const waitMs = lastMs + Math.max(LEAST_MS, OWNER_MS * count) - nowMs
      if (isSameElse && waitMs > 0) return waitMs
    }
    this.#writtenMs.set(key, nowMs)
    return 0
  }

  forget(key: string): void {
    this.#writtenMs.delete(key)
  }
}
