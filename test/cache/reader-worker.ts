import { parentPort, workerData } from 'node:worker_threads'
import { CacheMemory } from '../../src/cache/cache-memory.ts'
import { CacheStore } from '../../src/cache/cache-store.ts'
import { readRecords } from '../../src/cache/entry.ts'
import { RRType } from '../../src/dns/iana/index.ts'
import { transaction } from '../support/transaction.ts'

/*
 * Reads the entries that memory.test.ts writes until word 14 of the memory is set, and reports how many it
 * found, and how many had octets of different entries. Sets word 15 after enough of them.
 */

if (parentPort !== null) {
  const { buffer, entries } = workerData as { buffer: SharedArrayBuffer; entries: number }
  const store = new CacheStore(new CacheMemory(buffer, entries), (ms) => ms, undefined)
  const stop = new Int32Array(buffer, 0, 16)
  let torn = 0
  let found = 0
  parentPort.postMessage('ready')
  for (let i = 0; Atomics.load(stop, 14) === 0; i++) {
    const tx = transaction({ name: `n${i % 20}.example.`, type: RRType.TXT })
    if (!store.find(tx)) continue
    found++
    if (found === 30_000) Atomics.store(stop, 15, 1)
    readRecords(tx, tx.chasedOctets, 0, 0, 300)
    const { rdataBytes, rdataOffset, rdataOctets, count } = tx.response
    const at = rdataOffset[0]!
    const bytes = rdataBytes[0]!.subarray(at, at + rdataOctets[0]!)
    const last = bytes[3]
    if (count !== 1 || !bytes.subarray(4).every((octet) => octet === last)) torn++
  }
  parentPort.postMessage({ torn, found })
}
