import { LineBudget } from '../../base/telemetry/line-budget.ts'
import { type AddressFamily, printAddress } from '../../dns/text/address.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { ProxyFault } from '../../transport/proxy/rules.ts'

/** By `ProxyFault`: the label of the metric. */
export const REASONS = ['malformed', 'rejected'] as const

/** Lines per thread and period. */
const LINES_MAX = 5
const PERIOD_MS = 60_000

/** Counts what is dropped because of its PROXY header, and logs some of it. */
export class FaultReports {
  readonly slots: CounterSlots
  readonly #log: SetupContext['log']
  readonly #clock: SetupContext['clock']
  readonly #lines = new LineBudget(LINES_MAX, PERIOD_MS)

  constructor(c: SetupContext) {
    this.#log = c.log
    this.#clock = c.clock
    this.slots = c.counters()
    this.slots.length = REASONS.length
  }

  note(server: string, fault: ProxyFault, address: Uint8Array, family: number): void {
    this.slots.at(server, '', '')[fault]! += 1
    if (!this.#lines.take(this.#clock.monotonic())) return
    const from = printAddress(address, family as AddressFamily)
    this.#log.warning(
      `${server}: dropped a PROXY header of ${from}: ${REASONS[fault]}`,
      'proxy-header-refused',
    )
  }
}
