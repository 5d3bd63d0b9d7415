import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Client } from '../../egress/agent/client.ts'
import type { PortRange } from '../../egress/rules/port-range.ts'
import { isOpen } from '../../egress/rules/rule.ts'
import type { AddressPair, Allowance, Enforcer } from '../../egress/sinks/enforcer.ts'

const LINES_MAX = 100
const LINES_PERIOD_MS = 60_000

/** Logs what would be enforced, at most 100 lines a minute. Each change is a line. */
export class DryEnforcer implements Enforcer {
  readonly #log: Logger
  readonly #monotonic: () => number
  readonly #budget = new LineBudget(LINES_MAX, LINES_PERIOD_MS)
  #clients: ReadonlyMap<string, Client> = new Map()
  readonly #allowed = new Map<string, string>()

  constructor(log: Logger, monotonic: () => number) {
    this.#log = log
    this.#monotonic = monotonic
  }

  setClients(clients: readonly Client[]): Promise<string> {
    const before = this.#clients
    const restricted = clients.filter(({ rules }) => !isOpen(rules))
    this.#clients = new Map(restricted.map((client) => [client.id, client]))
    for (const [id, { addresses, rules }] of this.#clients) {
      if (before.get(id)?.rules !== rules) this.#print(`${id}: enforce (${addresses.join(' ')})`)
    }
    for (const id of before.keys()) if (!this.#clients.has(id)) this.#print(`${id}: release`)
    return Promise.resolve('')
  }

  allow({ client, address }: AddressPair, allowances: readonly Allowance[]): undefined {
    const key = `${client} to ${address}`
    const ports = allowances.map((one) => printPorts(one.ports)).join(', ')
    const before = this.#allowed.get(key) ?? ''
    if (ports === before) return undefined
    if (ports === '') this.#allowed.delete(key)
    else this.#allowed.set(key, ports)
    this.#print(ports === '' ? `deny ${key}` : `allow ${key}, ${ports}`)
    return undefined
  }

  adopt(): Promise<string> {
    return Promise.resolve('')
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #print(text: string): void {
    if (this.#budget.take(this.#monotonic())) this.#log.info(`dry run: ${text}`, 'egress-dry-run')
  }
}

function printPorts(ports: PortRange | undefined): string {
  if (ports === undefined) return 'all ports'
  const { protocol, first, last } = ports
  return first === last ? `${protocol} ${first}` : `${protocol} ${first}-${last}`
}
