import type { ThreadedFileZones } from '../../authority/threaded-file-zones.ts'
import type { Timers } from '../../base/timers.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { guarding } from '../../telemetry/guard.ts'
import { scanNotice } from './secondary.ts'
import type { SecondaryZone } from './secondary-zone.ts'

/** Interval of the checks which zones are due. */
export const TICK_MS = 250
/** Maximum of concurrent transfers. */
export const TRANSFERS_MAX = 8
/** Maximum of concurrent transfers from one primary, so that a hanging primary leaves room for the others. */
export const TRANSFERS_PER_HOST_MAX = 4

/**
 * Keeps the zones of one directive current: requests them when they are due, and drops those that
 * have expired.
 */
export class Follower {
  readonly #context: SetupContext
  readonly #served: ThreadedFileZones
  readonly #timers: Timers
  readonly #transfers
  readonly #notifies
  #zones: readonly SecondaryZone[] = []
  #underWay = 0
  /** Number of transfers, by address of the primary. */
  readonly #underWayFrom = new Map<string, number>()
  #stopTicking: (() => void) | undefined

  constructor(c: SetupContext, served: ThreadedFileZones, timers: Timers) {
    this.#context = c
    this.#served = served
    this.#timers = timers
    const help = 'Questions to primaries: how the zone came, or that it did not.'
    this.#transfers = c.metrics.counter('coredns_secondary_transfers_total', help, ['result'])
    const notifies = 'NOTIFYs of primaries.'
    this.#notifies = c.metrics.counter('coredns_secondary_notifies_total', notifies)
  }

  add(zones: readonly SecondaryZone[]): void {
    this.#zones = zones
  }

  start(): void {
    this.#stopTicking = this.#timers.every(TICK_MS, () => this.#tick())
    this.#tick()
  }

  stop(): void {
    this.#stopTicking?.()
    for (const zone of this.#zones) zone.stop()
  }

  count(result: string): void {
    this.#transfers.inc({ result })
  }

  takeNotice(text: string): void {
    const { index, serial, host } = scanNotice(text)
    const nowMs = this.#context.clock.monotonic()
    this.#notifies.inc()
    // The next tick starts the transfer, so that a flood of NOTIFYs costs no more than this.
    this.#zones[index]?.notify(host, serial, nowMs)
  }

  #tick(): void {
    const nowMs = this.#context.clock.monotonic()
    let isExpired = false
    const due: SecondaryZone[] = []
    for (const zone of this.#zones) {
      isExpired = zone.expire(nowMs) || isExpired
      if (zone.isDue(nowMs)) due.push(zone)
    }
    if (isExpired) this.#publish()
    this.#startDue(due)
  }

  /** Starts the zones that have waited longest first. */
  #startDue(due: SecondaryZone[]): void {
    if (this.#underWay >= TRANSFERS_MAX) return
    due.sort((a, b) => a.dueMs - b.dueMs)
    for (const zone of due) {
      if (this.#underWay >= TRANSFERS_MAX) return
      const { host } = zone
      if ((this.#underWayFrom.get(host) ?? 0) < TRANSFERS_PER_HOST_MAX) {
        void this.#refresh(zone, host)
      }
    }
  }

  async #refresh(zone: SecondaryZone, host: string): Promise<void> {
    this.#count(host, 1)
    await guarding(
      this.#context.log,
      `Transferring zone ${zone.zoneText}`,
    )(async () => {
      if (await zone.refresh()) this.#publish()
    })
    this.#count(host, -1)
  }

  #count(host: string, change: 1 | -1): void {
    this.#underWay += change
    const fromHost = (this.#underWayFrom.get(host) ?? 0) + change
    if (fromHost === 0) this.#underWayFrom.delete(host)
    else this.#underWayFrom.set(host, fromHost)
  }

  #publish(): void {
    this.#served.publish(this.#zones)
  }
}
