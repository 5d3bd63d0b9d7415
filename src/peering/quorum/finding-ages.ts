import type { Clock } from '../../base/clock.ts'

/** How long sites have reported failures, by our own clock: a site dates its findings, but its clock may be wrong. */
export class FindingAges {
  /** By host, then by failure: monotonic milliseconds. */
  readonly #hosts = new Map<string, ReadonlyMap<string, number>>()

  /** Reads the failures of a host. `id`: as in QuorumHost. */
  read(id: string, clock: Pick<Clock, 'monotonic'>): FindingReader {
    const nowMs = clock.monotonic()
    const known = this.#hosts.get(id)
    const next = new Map<string, number>()
    return {
      ageOf: (finding) => {
        const sinceMs = known?.get(finding) ?? nowMs
        next.set(finding, sinceMs)
        return nowMs - sinceMs
      },
      store: () => {
        if (next.size === 0) this.#hosts.delete(id)
        else this.#hosts.set(id, next)
      },
    }
  }

  forget(id: string): void {
    this.#hosts.delete(id)
  }
}

export interface FindingReader {
  /** Returns the milliseconds since this failure was reported first. `finding`: who reports it, and the address. */
  ageOf(finding: string): number
  /** Forgets what was not read again. */
  store(): void
}
