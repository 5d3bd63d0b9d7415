import { Cache, type CacheOptions, type CacheSource } from '../../src/cache/cache.ts'
import { CacheMemory, createCacheBuffer } from '../../src/cache/cache-memory.ts'
import { CacheStore } from '../../src/cache/cache-store.ts'
import { CacheWriter } from '../../src/cache/cache-writer.ts'
import { Variant } from '../../src/cache/entry.ts'
import { Rcode, RRType } from '../../src/dns/iana/index.ts'
import { Section } from '../../src/dns/message/section.ts'
import { AddressSet } from '../../src/dns/text/address-set.ts'
import { CounterSlots } from '../../src/plugin/counter-slots.ts'
import { DROP, type Handler } from '../../src/plugin/handler.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { ZoneSet } from '../../src/zone/lookup/zone-set.ts'
import {
  lonelyServer,
  type Question,
  type Shown,
  show,
  transaction,
} from '../support/transaction.ts'
import { wire } from '../support/zone-names.ts'

const ENTRIES = 1024
/** The Unix time at the start of a test. */
const START_SECONDS = 1_800_000_000
export const KIND = { ttlMaxSeconds: 3600, ttlMinSeconds: 5, disabled: undefined }
const OPTIONS: CacheOptions = {
  zones: new ZoneSet([wire('.')]),
  success: KIND,
  denial: { ...KIND, ttlMaxSeconds: 1800 },
  servfailSeconds: 5,
  prefetchHits: 0,
  prefetchGapSeconds: 60,
  prefetchShare: 0.1,
  staleSeconds: 0,
  verifiesStale: false,
  keepsTtl: false,
  earlySeconds: 0,
}

/** An early client: 192.0.2.53. */
const EARLY = { family: 1, bytes: Uint8Array.of(192, 0, 2, 53), bits: 32 } as const

export type Fill = (tx: Transaction) => number

export const address =
  (ttl: number, last = 1): Fill =>
  ({ query, response }) => {
    const rdata = Uint8Array.of(192, 0, 2, last)
    response.add(Section.Answer, query.qname, 0, RRType.A, 1, ttl, rdata, 0, 4)
    response.recursionAvailable = true
    return Rcode.NOERROR
  }
const soa = (minimum: number): Uint8Array => {
  const rdata = new Uint8Array([...wire('ns.'), ...wire('a.'), ...new Uint8Array(20)])
  new DataView(rdata.buffer).setUint32(rdata.length - 4, minimum)
  return rdata
}
export const denial =
  (rcode: number, ttl: number, minimum: number): Fill =>
  ({ query, response }) => {
    const rdata = soa(minimum)
    response.rcode = rcode
    response.add(Section.Authority, query.qname, 0, RRType.SOA, 1, ttl, rdata, 0, rdata.length)
    return rcode
  }
export const failure: Fill = () => Rcode.SERVFAIL

/** A cache over a chain that waits and answers with `fills`, one after the other; the last one stays. */
export function start(options: Partial<CacheOptions>, ...fills: Fill[]) {
  const all = { ...OPTIONS, ...options }
  let atSeconds = 0
  const buffers = [createCacheBuffer(ENTRIES), createCacheBuffer(ENTRIES)] as const
  const storesFor = (isWriter: boolean): CacheSource => {
    const [positive, negative] = buffers.map((buffer) => {
      const memory = new CacheMemory(buffer, ENTRIES)
      const writer = isWriter ? new CacheWriter(memory, ENTRIES) : undefined
      return (variant: Variant) => new CacheStore(memory, (ms) => ms, writer, variant)
    })
    const stores = {
      success: positive!(Variant.Only),
      late: all.earlySeconds > 0 ? positive!(Variant.Late) : undefined,
      denial: negative!(Variant.Only),
      sharedMs: (ms: number) => ms,
    }
    return { stores, early: new AddressSet([EARLY]), now: () => (START_SECONDS + atSeconds) * 1000 }
  }
  let asked = 0
  const below: Handler = {
    name: 'forward',
    serve: async (tx) => fills[Math.min(asked++, fills.length - 1)]!(tx),
  }
  const slots = new CounterSlots()
  const cache = new Cache('cache', below, storesFor(true), all, slots)
  const handOver: Handler = { name: 'forward', serve: (tx) => tx.server.handOver('forward') }
  const inDataThread = new Cache('cache', handOver, storesFor(false), all, new CounterSlots())
  let isHandingOver = false
  let canHandOver = true
  const server = {
    ...lonelyServer,
    get canHandOver() {
      return canHandOver
    },
    handOver: () => {
      isHandingOver = true
      return DROP
    },
    repeat: (tx: Transaction) => {
      const name = Buffer.from(tx.query.qname.subarray(1, 1 + tx.query.qname[0]!)).toString()
      return transaction({ ...QUESTION, name: `${name}.example.`, startedMs: tx.startedMs }, server)
    },
  }
  return {
    asked: () => asked,
    count: (index: number): number => {
      let sum = 0
      slots.forEach((counts) => {
        sum += counts.take(index)
      })
      return sum
    },
    ask: async (seconds: number, over: Partial<Question> = {}) => {
      atSeconds = seconds
      return show(cache, transaction({ ...QUESTION, ...over, startedMs: seconds * 1000 }, server))
    },
    setBusy: () => {
      canHandOver = false
    },
    /** `handed over` if another thread must answer. */
    inDataThread: async (seconds: number, over: Partial<Question> = {}) => {
      isHandingOver = false
      const tx = transaction({ ...QUESTION, ...over, startedMs: seconds * 1000 }, server)
      const shown = await show(inDataThread, tx)
      return isHandingOver ? 'handed over' : shown
    },
  }
}

export const QUESTION: Question = { name: 'www.example.', recursionDesired: true }
/** The rcode that is sent. */
export const codeOf = ({ status }: Shown): string =>
  /SERVFAIL|REFUSED|NXDOMAIN/.exec(status)?.[0] ?? 'NOERROR'
