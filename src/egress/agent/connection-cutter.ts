import { type Guarded, guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { AddressRules } from '../learned/address-rules.ts'
import type { Connection } from '../rules/connection.ts'
import type { ClientGrants } from './client-grants.ts'
import type { Connections, Flow } from './connections.ts'

/** Cuts of one client in one pass: each starts a process, and other clients wait. */
const CUTS_MAX = 300
const DNS_PORT = 53
const PROTOCOLS: Readonly<Record<number, Connection['protocol']>> = {
  6: 'tcp',
  17: 'udp',
  132: 'sctp',
}

interface ConnectionCutterParts {
  readonly connections: Connections
  readonly rules: AddressRules
  /** The client with an address. */
  readonly clientAt: (address: string) => ClientGrants | undefined
  /** Resolves with '' once the rules of all clients are in force, otherwise with the reason why not. */
  readonly enforced: () => Promise<string>
  readonly log: Logger
}

/**
 * Ends the open connections that the rules of clients do not allow. It compares them after a change of
 * the rules is in force: what is opened later has been decided by the new rules.
 */
export class ConnectionCutter {
  readonly #parts: ConnectionCutterParts
  readonly #guarded: Guarded
  /** Clients whose connections are to be compared. */
  readonly #due = new Set<ClientGrants>()
  #isRunning = false
  #isClosed = false
  #fault = ''

  constructor(parts: ConnectionCutterParts) {
    this.#parts = parts
    this.#guarded = guarding(parts.log, 'Ending connections of clients')
  }

  /** Compares the connections of these clients soon. */
  add(clients: Iterable<ClientGrants>): void {
    for (const client of clients) this.#due.add(client)
    void this.#guarded(() => this.run())
  }

  /** Compares the connections of all clients that are due. A client for which it fails stays due. */
  async run(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    try {
      let isDone = true
      while (isDone && this.#due.size > 0) isDone = await this.#pass()
    } finally {
      this.#isRunning = false
    }
  }

  close(): void {
    this.#isClosed = true
  }

  /** Returns false if clients stay due for a later run. */
  async #pass(): Promise<boolean> {
    if ((await this.#parts.enforced()) !== '' || this.#isClosed) return false
    const due = new Set(this.#due)
    this.#due.clear()
    const left = new Set<ClientGrants>()
    const found = new Map<ClientGrants, Map<string, Flow>>()
    let fault = await this.#parts.connections.dump((flow) => {
      const client = this.#parts.clientAt(flow.source)
      if (client === undefined || !due.has(client) || !this.#isDenied(client, flow)) return
      const flows = found.get(client) ?? new Map<string, Flow>()
      found.set(client, flows)
      if (flows.size < CUTS_MAX) flows.set(keyOf(flow), flow)
      else left.add(client)
    })
    const isComplete = fault === ''
    let count = 0
    for (const flow of interleaved([...found.values()].map((flows) => [...flows.values()]))) {
      // It may have been long ago.
      const client = this.#parts.clientAt(flow.source)
      if (client === undefined || !this.#isDenied(client, flow)) continue
      const cut = await this.#parts.connections.cut(flow)
      count += cut.count
      fault ||= cut.fault
    }
    this.#report(count, fault)
    for (const client of isComplete ? left : due) this.#due.add(client)
    return isComplete && left.size === 0
  }

  #isDenied(client: ClientGrants, flow: Flow): boolean {
    const { rules } = this.#parts
    const { protocol, port, destination, target, targetPort } = flow
    const [asked, address] = [scanAddress(destination), scanAddress(target)]
    if (asked === undefined || address === undefined) return false
    if (rules.isInCluster(asked) || rules.isInCluster(address)) return false
    const name = PROTOCOLS[protocol] ?? 'other'
    const isRedirected = destination !== target || port !== targetPort
    // Queries that are redirected to this host are not forwarded.
    if (port === DNS_PORT && isRedirected && name !== 'other') return false
    return !client.mayContinue({ address, protocol: name, port: targetPort })
  }

  #report(count: number, fault: string): void {
    if (this.#isClosed) return
    const { log } = this.#parts
    if (count > 0)
      log.info(`connections ended that are no longer allowed: ${count}`, 'connections-cut')
    if (fault !== '' && fault !== this.#fault) {
      log.error(
        `connections that are no longer allowed may continue: ${fault}`,
        'connections-cut-failed',
      )
    }
    this.#fault = fault
  }
}

/** Connections with the same key end together. */
function keyOf({ protocol, source, destination, port, target, targetPort }: Flow): string {
  return `${protocol} ${source} ${destination} ${port} ${target} ${targetPort}`
}

/** The first of each list, then the second of each, and so on. */
function* interleaved<T>(lists: readonly (readonly T[])[]): Generator<T> {
  const length = Math.max(0, ...lists.map((list) => list.length))
  for (let i = 0; i < length; i++) {
    for (const list of lists) if (i < list.length) yield list[i]!
  }
}
