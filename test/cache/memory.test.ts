import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { CacheMemory, createCacheBuffer } from '../../src/cache/cache-memory.ts'
import { CacheStore } from '../../src/cache/cache-store.ts'
import { CacheWriter } from '../../src/cache/cache-writer.ts'
import { readRecords } from '../../src/cache/entry.ts'
import { RRType } from '../../src/dns/iana/index.ts'
import { Section } from '../../src/dns/message/section.ts'
import type { Transaction } from '../../src/plugin/transaction.ts'
import { transaction } from '../support/transaction.ts'

// Long: it fills caches.

const ENTRIES = 64

/** An answer of one TXT record with that text and as many octets as wanted. */
function answer(name: string, value: number, octets: number): Transaction {
  const tx = transaction({ name, type: RRType.TXT })
  const rdata = new Uint8Array(Math.max(4, octets)).fill(value & 0xff)
  new DataView(rdata.buffer).setUint32(0, value)
  tx.response.add(Section.Answer, tx.query.qname, 0, RRType.TXT, 1, 300, rdata, 0, rdata.length)
  return tx
}

/** The value of the entry of a name; -1 = none, -2 = its octets are not those of one entry. */
function valueIn(store: CacheStore, name: string): number {
  const tx = transaction({ name, type: RRType.TXT })
  if (!store.find(tx)) return -1
  readRecords(tx, tx.chasedOctets, 0, 0, 300)
  const { rdataBytes, rdataOffset, rdataOctets } = tx.response
  const at = rdataOffset[0]!
  const bytes = rdataBytes[0]!.subarray(at, at + rdataOctets[0]!)
  const value = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)
  return bytes.subarray(4).every((octet) => octet === (value & 0xff)) ? value : -2
}

function storeOf(): { buffer: SharedArrayBuffer; store: CacheStore } {
  const buffer = createCacheBuffer(ENTRIES)
  const memory = new CacheMemory(buffer, ENTRIES)
  return { buffer, store: new CacheStore(memory, (ms) => ms, new CacheWriter(memory, ENTRIES)) }
}

const arbitraryStep = fc.record({
  name: fc.integer({ min: 0, max: 99 }),
  octets: fc.oneof(fc.integer({ min: 4, max: 300 }), fc.integer({ min: 4, max: 17_000 })),
  removes: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
})

t.test('a cache has what was stored last, or nothing', async (t) => {
  let found = 0
  const property = fc.property(fc.array(arbitraryStep, { maxLength: 300 }), (steps) => {
    const { store } = storeOf()
    const model = new Map<string, number>()
    steps.forEach(({ name, octets, removes }, i) => {
      const qname = `n${name}.example.`
      const tx = answer(qname, i, octets)
      if (removes) {
        store.remove(tx)
        model.delete(qname)
        if (valueIn(store, qname) !== -1) throw new Error(`${qname} was removed`)
        return
      }
      store.put(tx, 300)
      const now = valueIn(store, qname)
      // What is too long is not stored, and the entry before it stays.
      if (octets < 16_000 && now !== i) throw new Error(`${qname}: ${now}, not ${i}`)
      if (now === i) model.set(qname, i)
      if (store.entries > ENTRIES) throw new Error(`${store.entries} entries`)
    })
    for (let i = 0; i < 100; i++) {
      const qname = `n${i}.example.`
      const value = valueIn(store, qname)
      if (value === -1) continue
      found++
      if (value !== model.get(qname)) throw new Error(`${qname}: ${value}, not ${model.get(qname)}`)
    }
  })
  fc.assert(property, { seed: 3, numRuns: 200 })
  t.ok(found > 500, `${found} entries were found again`)
})

t.test('the oldest entries make room', async (t) => {
  const { store } = storeOf()
  for (let i = 0; i < 3 * ENTRIES; i++) store.put(answer(`n${i}.example.`, i, 40), 300)
  t.equal(store.entries, ENTRIES)
  t.equal(valueIn(store, 'n0.example.'), -1)
  t.equal(valueIn(store, `n${3 * ENTRIES - 1}.example.`), 3 * ENTRIES - 1)
  t.ok(store.evictions >= 2 * ENTRIES)
})

t.test('a thread that reads while another writes sees whole entries only', async (t) => {
  const { buffer, store } = storeOf()
  const worker = new Worker(new URL('./reader-worker.ts', import.meta.url), {
    workerData: { buffer, entries: ENTRIES },
  })
  t.teardown(() => worker.terminate())
  await once(worker, 'message')
  const stop = new Int32Array(buffer, 0, 16)
  const report = once(worker, 'message')
  for (let i = 0; i < 400_000 && Atomics.load(stop, 15) === 0; i++) {
    store.put(answer(`n${i % 20}.example.`, i, 40 + ((i * 37) % 3000)), 300)
  }
  Atomics.store(stop, 14, 1)
  const [{ torn, found }] = await report
  t.equal(torn, 0)
  t.ok(found > 1000, `${found} entries were found`)
})

t.test('answers for prefixes are found by the longest one that the client is in', async (t) => {
  const { store } = storeOf()
  const from = (address: number[], bits: number): Transaction => {
    const tx = transaction({ name: 'geo.example.', type: RRType.TXT })
    tx.query.hasEcs = true
    tx.query.ecsFamily = address.length === 4 ? 1 : 2
    tx.query.ecsSourceBits = bits
    tx.query.ecsAddress.fill(0)
    tx.query.ecsAddress.set(address)
    return tx
  }
  const put = (address: number[], bits: number, scope: number, value: number): void => {
    const tx = from(address, bits)
    const { response } = answer('geo.example.', value, 4)
    tx.response.add(
      Section.Answer,
      tx.query.qname,
      0,
      RRType.TXT,
      1,
      300,
      response.rdataBytes[0]!,
      0,
      4,
    )
    tx.response.scopeBits = scope
    store.put(tx, 300)
  }
  const get = (address: number[], bits: number): number => {
    const tx = from(address, bits)
    if (!store.find(tx)) return -1
    readRecords(tx, tx.chasedOctets, 0, 0, 300)
    return new DataView(tx.chasedOctets.buffer).getUint32(tx.response.rdataOffset[0]!)
  }
  t.equal(get([10, 1, 2, 0], 24), -1)
  put([10, 1, 2, 0], 24, 16, 1)
  put([10, 2, 3, 0], 24, 24, 2)
  put([0x20, 1, 0x0d, 0xb8, ...new Array(12).fill(0)], 56, 32, 3)
  t.equal(get([10, 1, 9, 0], 24), 1, 'the same /16')
  t.equal(get([10, 2, 3, 0], 24), 2)
  t.equal(get([10, 2, 4, 0], 24), -1, 'another /24')
  t.equal(get([10, 2, 0, 0], 16), -1, 'a client that hides more bits than the answer is for')
  t.equal(get([0x20, 1, 0x0d, 0xb8, 7, ...new Array(11).fill(0)], 56), 3)
  t.equal(valueIn(store, 'geo.example.'), -1, 'a query without a subnet has other answers')
  put([10, 9, 0, 0], 24, 0, 4)
  t.equal(get([172, 16, 0, 0], 24), 4, 'an answer for all')
  put([172, 16, 0, 0], 24, 24, 5)
  t.equal(get([172, 16, 0, 0], 24), 5, 'a newer one for a prefix replaces it')
  put([172, 16, 0, 0], 24, 16, 6)
  t.equal(get([172, 16, 0, 0], 24), 6, 'and one for a shorter prefix')
  store.remove(from([172, 16, 0, 0], 24))
  t.equal(get([172, 16, 0, 0], 24), -1)
  t.equal(get([10, 2, 3, 0], 24), 2, 'other prefixes stay')
})
