import type { Clock } from '../../base/clock.ts'
import { ask, PAYLOAD_OCTETS, questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { Opcode, OptionCode, printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag, type Message } from '../../dns/message/message.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { type PeerAddress, resolvePeer } from '../../peering/peer-address.ts'
import { KDRNT_ZONE } from '../../record/local-zone.ts'
import type { Logger } from '../../telemetry/log.ts'

/** Each try waits twice that much in all; asking every second is faster than any further one. */
const TIMEOUT_MS = 500
const TRIES = 3
/** Until a host name is resolved again: pods come and go. A resolver that fails is asked again sooner. */
const RESOLVE_MS = 10_000
const RESOLVE_AGAIN_MS = 1000
/** Addresses of one host name. */
const ADDRESSES_MAX = 8

/** Without the SOA that NOTIFYs may have (RFC 1996 section 3.7): whose zone is new is not said. */
const NOTIFY: Omit<Message, 'id'> = {
  ...questionOf(KDRNT_ZONE, RRType.SOA),
  opcode: Opcode.NOTIFY,
  flags: HeaderFlag.AA,
  edns: {
    payloadOctets: PAYLOAD_OCTETS,
    version: 0,
    flags: 0,
    options: [{ code: OptionCode.PASSED_ON, data: new Uint8Array(0) }],
  },
}

export interface PassTargetParts {
  /** Read anew for each NOTIFY; undefined = it is not signed. */
  readonly key: () => TsigKey | undefined
  /** Address that we send from; '' = any. */
  readonly sourceFor: (host: string) => string
  readonly onFailed: () => void
  readonly clock: Clock
  readonly log: Logger
  readonly resolve?: typeof resolvePeer
}

/** One of those whom NOTIFYs are passed on to; behind a host name there may be several, who all get them. */
export class PassTarget {
  readonly #address: PeerAddress
  readonly #parts: PassTargetParts
  readonly #aborting = new AbortController()
  #endpoints: readonly HostPort[] = []
  #resolveMs = Number.NEGATIVE_INFINITY
  #isResolving = false
  /** Under way, by address; true = once more. */
  readonly #active = new Map<string, boolean>()
  /** Whose failure was logged, and has not ended. */
  readonly #failing = new Set<string>()

  constructor(address: PeerAddress, parts: PassTargetParts) {
    this.#address = address
    this.#parts = parts
  }

  has(host: string): boolean {
    return this.#endpoints.some((endpoint) => endpoint.host === host)
  }

  /** Those that are known get a NOTIFY at once, those that turn out to be new after that. */
  notify(): void {
    for (const endpoint of this.#endpoints) this.#begin(endpoint)
    const isDue = this.#parts.clock.monotonic() >= this.#resolveMs
    if (isDue && !this.#isResolving) void this.#resolve()
  }

  close(): void {
    this.#aborting.abort()
  }

  /** Never rejects: no more does what it asks. */
  async #resolve(): Promise<void> {
    const { clock, resolve = resolvePeer } = this.#parts
    this.#isResolving = true
    const found = (await resolve(this.#address)).slice(0, ADDRESSES_MAX)
    this.#isResolving = false
    const isFound = found.length > 0
    this.#resolveMs = clock.monotonic() + (isFound ? RESOLVE_MS : RESOLVE_AGAIN_MS)
    this.#settle(this.#address.host, isFound ? '' : 'there is no such host')
    if (!isFound) return
    const added = found.filter(({ host }) => !this.has(host))
    this.#endpoints = found
    for (const endpoint of added) this.#begin(endpoint)
  }

  #begin(endpoint: HostPort): void {
    const name = printHostPort(endpoint)
    const isBusy = this.#active.has(name)
    this.#active.set(name, isBusy)
    if (!isBusy) void this.#send(endpoint, name)
  }

  async #send(server: HostPort, name: string): Promise<void> {
    const { signal } = this.#aborting
    while (this.#active.has(name) && !signal.aborted) {
      this.#active.set(name, false)
      const source = this.#parts.sourceFor(server.host)
      const limits = { timeoutMs: TIMEOUT_MS, tries: TRIES, signal }
      const key = this.#parts.key()
      const answered = await ask({ server, query: NOTIFY, key, source, ...limits })
      if (signal.aborted) return
      const isAgain = this.#active.get(name) === true
      if (!isAgain) this.#active.delete(name)
      this.#settle(name, answered.kind === 'failed' ? answered.reason : refusalOf(answered.message))
    }
  }

  /** `fault`: '' = it went well. */
  #settle(name: string, fault: string): void {
    const { log, onFailed } = this.#parts
    if (fault === '') {
      if (this.#failing.delete(name)) log.info(`NOTIFYs are passed on to ${name} again`)
      return
    }
    onFailed()
    if (this.#failing.has(name)) return
    // Pods that are gone are remembered no longer than others take their places.
    if (this.#failing.size >= 2 * ADDRESSES_MAX) this.#failing.clear()
    this.#failing.add(name)
    log.warning(`a NOTIFY was not passed on to ${name}: ${fault}`)
  }
}

function refusalOf({ rcode }: Message): string {
  return rcode === Rcode.NOERROR ? '' : `it answers ${printRcode(rcode)}`
}
