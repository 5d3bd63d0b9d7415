import type { NodeIndex } from './node-index.ts'
import type { ZoneRecords } from './records.ts'

/** Records by owner as plain data; `ZoneRecords` describes the fields. */
export interface RecordsInSharedMemory extends NodeIndex {
  readonly firstRecord: Int32Array
  readonly nextRecord: Int32Array
  readonly type: Uint16Array
  readonly ttlSeconds: Uint32Array
  readonly rdataOffset: Uint32Array
  readonly rdataOctets: Uint16Array
}

/** Copies the data that answers need to memory that all threads can share, without spare space. */
export function copyToSharedMemory(records: ZoneRecords): RecordsInSharedMemory {
  const { nodeCount, recordCount } = records
  return {
    octets: share(records.octets, records.octetCount),
    slots: share(records.slots, records.slots.length),
    hash: share(records.hash, nodeCount),
    ownerOffset: share(records.ownerOffset, nodeCount),
    ownerOctets: share(records.ownerOctets, nodeCount),
    firstRecord: share(records.firstRecord, nodeCount),
    nextRecord: share(records.nextRecord, recordCount),
    type: share(records.type, recordCount),
    ttlSeconds: share(records.ttlSeconds, recordCount),
    rdataOffset: share(records.rdataOffset, recordCount),
    rdataOctets: share(records.rdataOctets, recordCount),
  }
}

function share<T extends Uint8Array | Uint16Array | Uint32Array | Int32Array>(
  from: T,
  count: number,
): T {
  const memory = new SharedArrayBuffer(count * from.BYTES_PER_ELEMENT)
  const shared = new (from.constructor as new (memory: SharedArrayBuffer) => T)(memory)
  shared.set(from.subarray(0, count))
  return shared
}
