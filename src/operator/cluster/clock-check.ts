import type { Clock } from '../../base/clock.ts'
import type { ApiBody, ApiClient, ApiMethod, ApiResponse } from '../../kube/api.ts'
import { CLOCK_DIFFERS_MS } from '../../peering/site-clocks.ts'
import type { Logger } from '../../telemetry/log.ts'

/** A client that compares the clock of its server, which dates records, with ours, which sites compare. */
export class ClockCheck implements ApiClient {
  readonly #api: ApiClient
  readonly #parts: { readonly clock: Pick<Clock, 'now'>; readonly log: Logger }
  #fault = ''

  constructor(api: ApiClient, parts: { readonly clock: Pick<Clock, 'now'>; readonly log: Logger }) {
    this.#api = api
    this.#parts = parts
  }

  get place(): string {
    return this.#api.place
  }

  /** What is wrong with the clock of the server; '' = nothing, or it is not known. */
  get fault(): string {
    return this.#fault
  }

  get(path: string, signal: AbortSignal): Promise<ApiResponse> {
    return this.#timed(() => this.#api.get(path, signal))
  }

  send(
    method: ApiMethod,
    path: string,
    body: ApiBody | undefined,
    signal: AbortSignal,
  ): Promise<ApiResponse> {
    return this.#timed(() => this.#api.send(method, path, body, signal))
  }

  refresh(): void {
    this.#api.refresh()
  }

  /** A response is dated between its request and its arrival, however long that takes. */
  async #timed(exchange: () => Promise<ApiResponse>): Promise<ApiResponse> {
    const { clock, log } = this.#parts
    const sentMs = clock.now()
    const response = await exchange()
    const { dateMs } = response
    if (dateMs === undefined) return response
    const isBehind = dateMs + 1000 < sentMs - CLOCK_DIFFERS_MS
    const side = isBehind ? 'behind' : dateMs > clock.now() + CLOCK_DIFFERS_MS ? 'ahead of' : ''
    const fault = side === '' ? '' : printFault(side)
    if (fault === this.#fault) return response
    this.#fault = fault
    if (fault === '') log.info('the clock of the API server agrees with ours again')
    else log.warning(fault)
    return response
  }
}

function printFault(side: string): string {
  return /* warning */ `the clock of the API server is ${side} ours: it dates the records of its cluster, so they win or lose conflicts with other sites by mistake; synchronise the clocks`
}
