import { assert } from '../../base/assert.ts'
import type { Arena } from './arena.ts'
import {
  RRSET_HEAD,
  RRSET_REST,
  RRSET_STEERING_COUNT,
  RRSET_TTL,
  RRSET_WORDS,
  TABLE_FREE_RDATA_MAX,
} from './layout.ts'
import type { RRsetData } from './types.ts'

const TTL_SECONDS_MAX = 0x7fffffff

/**
 * Returns the words that an RRset occupies in an arena. Asserts that the RRset is valid: the
 * writer's callers validate.
 */
export function rrsetWords(data: RRsetData): number {
  const count = data.rdata.length
  assert(data.type > 0, 'type is not 0')
  assert(data.type <= 65535, 'type has 16 bits')
  assert(count > 0, 'RRset has rdata')
  assert(count <= 65535, 'RRset has at most 65535 rdata')
  assert(Number.isInteger(data.ttlSeconds), 'TTL is whole seconds')
  assert(data.ttlSeconds >= 0, 'TTL is not negative')
  assert(data.ttlSeconds <= TTL_SECONDS_MAX, 'TTL has 31 bits')
  let octets = 0
  for (const rdata of data.rdata) {
    assert(rdata.length <= 65535, 'rdata has at most 65535 octets')
    octets += 2 + rdata.length
  }
  const table = count > TABLE_FREE_RDATA_MAX ? count : 0
  return RRSET_REST + table + (data.steering?.length ?? 0) + Math.ceil(octets / 4)
}

/** Appends an RRset of `size` words; returns its offset. */
export function writeRRset(arena: Arena, data: RRsetData, size: number): number {
  const rrset = arena.allocate(size)
  const { words, bytes } = arena
  const count = data.rdata.length
  const steering = data.steering
  words[rrset + RRSET_HEAD] = ((data.type << 16) | count) >>> 0
  words[rrset + RRSET_TTL] = data.ttlSeconds
  words[rrset + RRSET_WORDS] = size
  words[rrset + RRSET_STEERING_COUNT] = steering?.length ?? 0
  const table = rrset + RRSET_REST
  let at = table + (count > TABLE_FREE_RDATA_MAX ? count : 0)
  if (steering !== undefined) {
    words.set(steering, at)
    at += steering.length
  }
  const start = at * 4
  let octet = start
  data.rdata.forEach((rdata, index) => {
    if (count > TABLE_FREE_RDATA_MAX) words[table + index] = octet - start
    bytes[octet] = rdata.length >> 8
    bytes[octet + 1] = rdata.length & 0xff
    bytes.set(rdata, octet + 2)
    octet += 2 + rdata.length
  })
  assert(octet <= (rrset + size) * 4, 'RRset fits its block')
  return rrset
}

/** True if the RRset at `rrset` equals `data` octet for octet, including the order of its rdata. */
export function equalsRRset(arena: Arena, rrset: number, data: RRsetData, size: number): boolean {
  const { words, bytes } = arena
  const count = data.rdata.length
  const steering = data.steering
  if (words[rrset + RRSET_HEAD] !== ((data.type << 16) | count) >>> 0) return false
  if (words[rrset + RRSET_TTL] !== data.ttlSeconds) return false
  if (words[rrset + RRSET_WORDS] !== size) return false
  if (words[rrset + RRSET_STEERING_COUNT] !== (steering?.length ?? 0)) return false
  let at = rrset + RRSET_REST + (count > TABLE_FREE_RDATA_MAX ? count : 0)
  if (steering?.some((word, i) => words[at + i] !== word)) return false
  at = (at + (steering?.length ?? 0)) * 4
  for (const rdata of data.rdata) {
    if (((bytes[at]! << 8) | bytes[at + 1]!) !== rdata.length) return false
    if (rdata.some((octet, i) => bytes[at + 2 + i] !== octet)) return false
    at += 2 + rdata.length
  }
  return true
}
