import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ApiClient, ApiMethod, ApiResponse } from '../../kube/api.ts'
import { WrappedClient } from '../../kube/wrapped-client.ts'
import { PeerClock } from '../../peering/peer-clock.ts'
import { printClockFault } from '../../peering/site-clocks.ts'

/** What is known of the clock of an API server. */
export type ApiClock = Pick<ClockCheck, 'fault' | 'onFault'>

/** True = the ages of the records of its cluster must not decide conflicts with other sites. */
export function isWrong(clock: Pick<ApiClock, 'fault'> | undefined): boolean {
  return clock !== undefined && clock.fault !== ''
}

interface ClockCheckParts {
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly log: Logger
}

/** A client that compares the clock of its server, which dates records, with ours, which sites compare. */
export class ClockCheck extends WrappedClient {
  readonly #parts: ClockCheckParts
  readonly #serverClock = new PeerClock()
  readonly #listeners = new Set<() => void>()
  #fault = ''

  constructor(api: ApiClient, parts: ClockCheckParts) {
    super(api)
    this.#parts = parts
  }

  /** What is wrong with the clock of the server; '' = nothing, or it is not known. */
  get fault(): string {
    return this.#fault
  }

  /** Calls back after `fault` changed. The returned function unsubscribes. */
  onFault(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** A response is dated between its request and its arrival, in whole seconds, however long that takes. */
  protected override async around(
    _method: ApiMethod,
    exchange: () => Promise<ApiResponse>,
  ): Promise<ApiResponse> {
    const { clock, log } = this.#parts
    const sentMs = clock.now()
    const response = await exchange()
    const { dateMs } = response
    if (dateMs === undefined) return response
    const [leastMs, mostMs] = [dateMs - clock.now(), dateMs + 1000 - sentMs]
    const aheadMs = Math.min(Math.max(this.#serverClock.aheadMs ?? 0, leastMs), mostMs)
    this.#serverClock.noteAhead(aheadMs, clock.monotonic())
    const fault = printClockFault('the API server', this.#serverClock.aheadMs ?? 0)
    if (fault === this.#fault) return response
    this.#fault = fault
    if (fault === '')
      log.info('the clock of the API server agrees with ours again', 'api-clock-agrees')
    else log.warning(fault, 'api-clock-differs')
    for (const listener of this.#listeners) listener()
    return response
  }
}
