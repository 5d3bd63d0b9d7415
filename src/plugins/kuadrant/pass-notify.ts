import type { Clock } from '../../base/clock.ts'
import type { Timers } from '../../base/timers.ts'
import { isInNetwork, scanAddress } from '../../dns/text/address.ts'
import type { Logger } from '../../telemetry/log.ts'
import { RefusalLog } from '../../telemetry/refusal-log.ts'
import type { PassOptions } from './pass-notify-options.ts'
import { PassTarget, type PassTargetParts } from './pass-target.ts'
import type { ZoneNotifySender } from './takes-notify.ts'

/** Minimum time between two NOTIFYs that are passed on, however many arrive. */
export const PASS_GAP_MS = 100

export interface PassNotifyParts extends Omit<PassTargetParts, 'onFailed'> {
  readonly options: PassOptions
  readonly count: (outcome: 'passed' | 'refused' | 'failed') => void
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
}

/**
 * Passes NOTIFYs of the zone kdrnt on to operators, whose addresses peers do not know. The server
 * sends a new NOTIFY of its own to the configured targets, at most ten times a second. It never
 * forwards a received packet.
 */
export class PassNotify {
  readonly #parts: PassNotifyParts
  readonly #targets: readonly PassTarget[]
  readonly #refusals: RefusalLog
  #passedMs = Number.NEGATIVE_INFINITY
  #cancel: (() => void) | undefined
  #isClosed = false

  constructor(parts: PassNotifyParts) {
    this.#parts = parts
    const { log, clock } = parts
    this.#refusals = new RefusalLog(log, clock, (host) => `a NOTIFY of ${host} is not passed on`)
    const onFailed = (): void => parts.count('failed')
    const more = { ...parts, onFailed }
    this.#targets = parts.options.targets.map((address) => new PassTarget(address, more))
  }

  take(sender: ZoneNotifySender): void {
    if (this.#isClosed) return
    const refusal = this.#refusalOf(sender)
    this.#parts.count(refusal === '' ? 'passed' : 'refused')
    if (refusal === '') this.#passSoon()
    else this.#refusals.note(sender.host, refusal)
  }

  close(): void {
    this.#isClosed = true
    this.#cancel?.()
    for (const target of this.#targets) target.close()
  }

  #refusalOf({ host, isSigned, isPassedOn }: ZoneNotifySender): string {
    // Servers that pass NOTIFYs on to each other in a ring would never stop.
    if (isPassedOn) return 'it was passed on before'
    // So would two servers, if one is an old version that does not mark its NOTIFYs as passed on.
    if (this.#targets.some((target) => target.has(host))) return 'it is one to pass them on to'
    if (isSigned) return ''
    const address = scanAddress(host)
    const { from } = this.#parts.options
    const isAllowed =
      address !== undefined &&
      from.some((cidr) => cidr.family === address.family && isInNetwork(address.bytes, cidr))
    return isAllowed ? '' : 'it is not signed, nor from a network of pass-notify-from'
  }

  #passSoon(): void {
    if (this.#cancel !== undefined) return
    const { clock, timers } = this.#parts
    const delayMs = Math.max(0, this.#passedMs + PASS_GAP_MS - clock.monotonic())
    this.#cancel = timers.after(delayMs, () => {
      this.#cancel = undefined
      this.#passedMs = clock.monotonic()
      for (const target of this.#targets) target.notify()
    })
  }
}
