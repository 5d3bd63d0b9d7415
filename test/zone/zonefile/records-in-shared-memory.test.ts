import fc from 'fast-check'
import t from 'tap'
import { findNode } from '../../../src/zone/zonefile/node-index.ts'
import { ZoneRecords } from '../../../src/zone/zonefile/records.ts'
import {
  copyToSharedMemory,
  type RecordsInSharedMemory,
} from '../../../src/zone/zonefile/records-in-shared-memory.ts'

/** `type ttl rdata` of every record of `owner`, in order; undefined = no such owner. */
function recordsOf(shared: RecordsInSharedMemory, owner: Uint8Array): string[] | undefined {
  const node = findNode(shared, owner, owner.length)
  if (node === -1) return undefined
  const found: string[] = []
  for (let i = shared.firstRecord[node]!; i !== -1; i = shared.nextRecord[i]!) {
    const offset = shared.rdataOffset[i]!
    const rdata = shared.octets.subarray(offset, offset + shared.rdataOctets[i]!)
    found.push(`${shared.type[i]} ${shared.ttlSeconds[i]} ${Buffer.from(rdata).toString('hex')}`)
  }
  return found
}

interface Given {
  readonly owner: Uint8Array
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
}

function fill(given: readonly Given[]): ZoneRecords {
  const records = new ZoneRecords(1)
  for (const { owner, type, ttlSeconds, rdata } of given) {
    const octets = { ownerOctets: owner.length, rdataOffset: 0, rdataOctets: rdata.length }
    records.add({ owner, type, ttlSeconds, rdata, ...octets, file: 'db', line: 1 })
  }
  return records
}

const arbitrary = fc.record({
  // Few owners, so that some have many records.
  owner: fc
    .nat({ max: 40 })
    .map((n) => new Uint8Array(Buffer.from(`\x03a${String(n).padStart(2, '0')}\0`))),
  type: fc.nat({ max: 0xffff }),
  ttlSeconds: fc.nat({ max: 0xffffffff }),
  rdata: fc.uint8Array({ maxLength: 300 }),
})

const late = {
  owner: new Uint8Array(Buffer.from('\x04late\0')),
  ownerOctets: 6,
  type: 1,
  ttlSeconds: 1,
  rdata: new Uint8Array(4),
  rdataOffset: 0,
  rdataOctets: 4,
}

t.test('another thread reads what was written', async (t) => {
  const property = fc.property(fc.array(arbitrary, { maxLength: 200 }), (given) => {
    const want = new Map<string, string[]>()
    for (const { owner, type, ttlSeconds, rdata } of given) {
      const key = Buffer.from(owner).toString('hex')
      const line = `${type} ${ttlSeconds} ${Buffer.from(rdata).toString('hex')}`
      want.set(key, [...(want.get(key) ?? []), line])
    }
    const records = fill(given)
    const shared = copyToSharedMemory(records)
    const copy = structuredClone(shared)
    // What is written later is not seen.
    records.add({ ...late, file: 'db', line: 2 })
    records.octets.fill(0)
    for (const [key, lines] of want) {
      const found = recordsOf(copy, Buffer.from(key, 'hex'))
      if (JSON.stringify(found) !== JSON.stringify(lines)) throw new Error(`${found} != ${lines}`)
    }
    return recordsOf(copy, late.owner) === undefined
  })
  t.doesNotThrow(() => fc.assert(property, { seed: 4, numRuns: 200 }))
})

t.test('threads share the memory, which holds no more than it has to', async (t) => {
  const owner = new Uint8Array(Buffer.from('\x01a\0'))
  const given = [1, 2, 3].map((type) => ({ owner, type, ttlSeconds: 60, rdata: new Uint8Array(4) }))
  const shared = copyToSharedMemory(fill(given))
  for (const [name, array] of Object.entries(shared)) {
    t.type(array.buffer, SharedArrayBuffer, name)
    t.equal(structuredClone(array).byteLength, array.byteLength, name)
  }
  const copy = structuredClone(shared)
  shared.ttlSeconds[0] = 77
  t.equal(copy.ttlSeconds[0], 77, 'one memory')
  t.equal(shared.octets.length, owner.length + 3 * 4)
  t.equal(shared.type.length, 3)
  t.equal(shared.hash.length, 1)
})

t.test('no records give empty memory', async (t) => {
  const shared = structuredClone(copyToSharedMemory(new ZoneRecords()))
  t.equal(recordsOf(shared, late.owner), undefined)
})
