import { setTimeout as delay } from 'node:timers/promises'
import { matchesDs } from '../../src/dns/dnssec/ds.ts'
import { keyTag } from '../../src/dns/dnssec/key-tag.ts'
import { coveredType, tagOf, verifySet } from '../../src/dns/dnssec/rrsig.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import type { Message } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printName } from '../../src/dns/name/name.ts'
import { UdpClient } from '../support/client.ts'
import { faultsOfMessage } from '../support/response-validator.ts'
import { wire } from '../support/zone-names.ts'

/** An RRset that a validator may have in its cache. */
interface CachedSet {
  readonly rdata: readonly Uint8Array[]
  untilMs: number
}

interface Kept {
  readonly message: Message
  readonly untilMs: number
}

interface WatchedZone {
  /** Without the final dot. */
  readonly zone: string
  /** Its servers, on 127.0.0.1. */
  readonly ports: readonly number[]
  readonly parentPort: number
}

/** How often the key sets are asked for. */
const ASK_MS = 150
const KEPT_MAX = 300

/**
 * The strictest validator of a zone: each answer must validate with each DNSKEY RRset, and that with each DS RRset, that a
 * cache may have. Also an answer in a cache, with the DNSKEY RRset of later.
 */
export class CachedKeys {
  readonly faults: string[] = []
  /** Answers that were checked; each once, however often. */
  count = 0
  readonly #of: WatchedZone
  readonly #apex: Uint8Array
  readonly #dnskeys = new Map<string, CachedSet>()
  readonly #ds = new Map<string, CachedSet>()
  #kept: Kept[] = []
  #isStopped = false

  constructor(of: WatchedZone) {
    this.#of = of
    this.#apex = wire(`${of.zone}.`)
  }

  /** The key tags of all DNSKEY RRsets that caches may have. */
  get tags(): readonly number[] {
    return [...this.#dnskeys.values()].flatMap(({ rdata }) => rdata.map((key) => keyTag(key)))
  }

  /** The key tags of all DS RRsets that caches may have. */
  get dsTags(): readonly number[] {
    return [...this.#ds.values()].flatMap(({ rdata }) => rdata.map((ds) => (ds[0]! << 8) | ds[1]!))
  }

  /** Asks for key sets until `stop`. */
  async watch(): Promise<void> {
    const { ports, parentPort, zone } = this.#of
    const servers = await Promise.all(ports.map((port) => UdpClient.connect(port)))
    const parent = await UdpClient.connect(parentPort)
    while (!this.#isStopped) {
      await this.#ask(parent, zone, 'DS')
      for (const server of servers) await this.#ask(server, zone, 'DNSKEY')
      await delay(ASK_MS)
    }
    for (const client of [...servers, parent]) client.close()
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Checks a reply of a server of the zone to a query with DO. */
  check(reply: Buffer): void {
    const message = parseMessage(reply)
    if (message === undefined) {
      this.faults.push('a reply cannot be parsed')
      return
    }
    if ((message.flags & HeaderFlag.TC) !== 0) return
    this.count++
    const ttls = [...message.answer, ...message.authority].map(({ ttlSeconds }) => ttlSeconds)
    const untilMs = Date.now() + Math.min(...ttls) * 1000
    const place = this.#kept.length < KEPT_MAX ? this.#kept.length : this.count % KEPT_MAX
    this.#kept[place] = { message, untilMs }
    for (const { rdata } of this.#live(this.#dnskeys)) this.#validate(message, rdata, 'now')
  }

  async #ask(client: UdpClient, name: string, type: 'DS' | 'DNSKEY'): Promise<void> {
    const reply = await client
      .ask({ name, type, dnssecOk: true, isRecursive: false }, 60, 200)
      .catch(() => undefined)
    const message = reply === undefined ? undefined : parseMessage(reply)
    if (message === undefined || (message.flags & HeaderFlag.TC) !== 0) return
    const wanted = type === 'DS' ? RRType.DS : RRType.DNSKEY
    const records = message.answer.filter((record) => record.type === wanted)
    if (records.length === 0) return
    const rdata = records.map((record) => record.rdata)
    const key = rdata
      .map((one) => Buffer.from(one).toString('hex'))
      .sort()
      .join()
    const sets = type === 'DS' ? this.#ds : this.#dnskeys
    const untilMs = Date.now() + records[0]!.ttlSeconds * 1000
    const known = sets.get(key)
    const isNew = known === undefined || known.untilMs < Date.now()
    sets.set(key, { rdata, untilMs })
    if (type === 'DNSKEY') for (const ds of this.#live(this.#ds)) this.#validateKeys(message, ds)
    if (isNew && type === 'DNSKEY') this.#validateKept(rdata)
  }

  #live(sets: Map<string, CachedSet>): CachedSet[] {
    const nowMs = Date.now()
    for (const [key, { untilMs }] of sets) if (untilMs <= nowMs) sets.delete(key)
    return [...sets.values()]
  }

  #validateKept(dnskeys: readonly Uint8Array[]): void {
    this.#kept = this.#kept.filter(({ untilMs }) => untilMs > Date.now())
    for (const { message } of this.#kept) this.#validate(message, dnskeys, 'from a cache')
  }

  #validate(message: Message, dnskeys: readonly Uint8Array[], when: string): void {
    const nowSeconds = Date.now() / 1000
    const zone = { apex: this.#apex, dnskeys, nowSeconds, isRolling: true }
    const { question } = message
    // Keys with a DS sign them, which may not have all algorithms yet (RFC 6840 section 5.11).
    if (question?.type === RRType.DNSKEY || question?.type === RRType.CDS) return
    const found = faultsOfMessage(message, zone)
    if (found.length === 0) return
    const what = question === undefined ? '' : `${printName(question.name)} ${question.type}`
    this.#note(`${what} ${when}: ${found.join(', ')}`)
  }

  /** Each algorithm of the DS RRset needs a key that signs the DNSKEY RRset. */
  #validateKeys({ answer }: Message, { rdata: ds }: CachedSet): void {
    const keys = answer.filter(({ type }) => type === RRType.DNSKEY)
    const rdata = keys.map((record) => record.rdata)
    const [first] = keys
    const set = { owner: this.#apex, type: RRType.DNSKEY, ttlSeconds: first!.ttlSeconds, rdata }
    const signatures = answer
      .filter((one) => one.type === RRType.RRSIG && coveredType(one.rdata) === RRType.DNSKEY)
      .map((record) => record.rdata)
    const trusted = rdata.filter((key) => ds.some((one) => matchesDs(this.#apex, key, one)))
    const signing = trusted.filter((key) =>
      signatures.some((rrsig) => tagOf(rrsig) === keyTag(key) && verifySet(set, rrsig, key)),
    )
    for (const algorithm of new Set(ds.map((one) => one[2]!))) {
      if (signing.some((key) => key[3] === algorithm)) continue
      this.#note(`DNSKEY: no key with a DS of algorithm ${algorithm} signs it`)
    }
  }

  #note(fault: string): void {
    this.faults.push(`${new Date().toISOString()} ${this.#of.zone}: ${fault}`)
  }
}
