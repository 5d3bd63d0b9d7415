import type { Clock } from '../../base/clock.ts'
import { ask, PAYLOAD_OCTETS, questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { Opcode, OptionCode, printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag, type Message } from '../../dns/message/message.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { KDRNT_ZONE } from '../../dnsrecord/local-zone.ts'
import { type PeerAddress, resolvePeer } from '../../peering/peer-address.ts'
import type { Logger } from '../../telemetry/log.ts'

/**
 * Each attempt waits twice as long in total. The operator's SOA poll every second is faster than
 * any further attempt.
 */
const TIMEOUT_MS = 500
const TRIES = 3
/**
 * Time until a host name is resolved again, since pods change. After a failure, it is resolved
 * again sooner.
 */
const RESOLVE_MS = 10_000
const RESOLVE_AGAIN_MS = 1000
/** Maximum of addresses of one host name. */
const ADDRESSES_MAX = 8

/**
 * Has no SOA, which is optional in a NOTIFY (RFC 1996 section 3.7), because it does not say whose
 * zone is new.
 */
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
  /** Read again for each NOTIFY; undefined = it is not signed. */
  readonly key: () => TsigKey | undefined
  /** Source address; '' = any. */
  readonly sourceFor: (host: string) => string
  readonly onFailed: () => void
  readonly clock: Clock
  readonly log: Logger
  readonly resolve?: typeof resolvePeer
}

/** One configured target of NOTIFYs. If a host name has several addresses, each of them gets the NOTIFY. */
export class PassTarget {
  readonly #address: PeerAddress
  readonly #parts: PassTargetParts
  readonly #aborting = new AbortController()
  #endpoints: readonly HostPort[] = []
  #resolveMs = Number.NEGATIVE_INFINITY
  #isResolving = false
  /** NOTIFYs in flight, by address; true = send once more. */
  readonly #active = new Map<string, boolean>()
  /** Targets with a logged failure that has not ended. */
  readonly #failing = new Set<string>()

  constructor(address: PeerAddress, parts: PassTargetParts) {
    this.#address = address
    this.#parts = parts
  }

  has(host: string): boolean {
    return this.#endpoints.some((endpoint) => endpoint.host === host)
  }

  /** Sends a NOTIFY to the known addresses at once, and to new addresses after the host name is resolved. */
  notify(): void {
    for (const endpoint of this.#endpoints) this.#begin(endpoint)
    const isDue = this.#parts.clock.monotonic() >= this.#resolveMs
    if (isDue && !this.#isResolving) void this.#resolve()
  }

  close(): void {
    this.#aborting.abort()
  }

  /** Never rejects, since `resolve` never rejects. */
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

  /** `fault`: '' = success. */
  #settle(name: string, fault: string): void {
    const { log, onFailed } = this.#parts
    if (fault === '') {
      if (this.#failing.delete(name)) log.info(`NOTIFYs are passed on to ${name} again`)
      return
    }
    onFailed()
    if (this.#failing.has(name)) return
    // Limits the entries of pods that no longer exist.
    if (this.#failing.size >= 2 * ADDRESSES_MAX) this.#failing.clear()
    this.#failing.add(name)
    log.warning(`a NOTIFY was not passed on to ${name}: ${fault}`)
  }
}

function refusalOf({ rcode }: Message): string {
  return rcode === Rcode.NOERROR ? '' : `it answers ${printRcode(rcode)}`
}
