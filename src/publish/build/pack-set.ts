import { PackedWriter } from '../../base/packed-writer.ts'
import type { Candidate } from '../../steering/candidate.ts'
import { type Failover, type FailoverList, servingMembers } from '../../steering/failover.ts'
import type { OwnerSet } from './owner-set.ts'

/** Flags of a candidate. */
const FLAG_DEFAULT = 1
const FLAG_WEIGHT = 2
const FLAG_SEED = 4
const FLAG_SHIFT = 8
const FLAG_TARGET = 16

const out = new PackedWriter()

/**
 * Returns all that clients see of an RRset, one character per octet: equal for RRsets that clients can't distinguish.
 * Digests of zones are in files, so a change of this form raises the serial of every zone once.
 *
 *     type u16 | ttl u32 | rdata count u16, rdata s16 each | candidate count u16, candidates
 *          | failover list count u16, lists s16 each | [sticky: ipv4 bits u8 | ipv6 bits u8] | [answers u8]
 *     candidate: flags u8 | code s8 | location s8 | rdata count u16, index u16 each
 *          | [weight u32] | [seed u32 u32] | [percent of the shift s8]
 */
export function packSet({
  type,
  ttlSeconds,
  rdata,
  candidates,
  sticky,
  failover,
  answers,
}: OwnerSet): string {
  const lists = failover?.lists.map((list) => packList(list, failover, candidates)).sort() ?? []
  out.begin()
  out.u16(type)
  out.u32(ttlSeconds)
  out.u16(rdata.length)
  for (const one of rdata) out.octets16(one)
  out.u16(candidates.length)
  for (const candidate of candidates) putCandidate(candidate)
  out.u16(lists.length)
  for (const list of lists) out.octets16(Buffer.from(list, 'latin1'))
  if (sticky !== undefined) {
    out.u8(sticky.ipv4Bits)
    out.u8(sticky.ipv6Bits)
  }
  if (answers !== undefined) out.u8(answers)
  return out.take()
}

/** Packs who serves, not how that was found: clients see nothing else. */
function packList(list: FailoverList, failover: Failover, all: readonly Candidate[]): string {
  const members = servingMembers(list, failover)
  const indexes = members.map((member) => all.indexOf(member))
  const isKnown = !indexes.includes(-1)
  out.begin()
  out.text8(list.code?.text ?? '')
  out.u8(isKnown ? 1 : 0)
  if (isKnown) for (const index of indexes) out.u16(index)
  else for (const member of members) putCandidate(member)
  return out.take()
}

function putCandidate(candidate: Candidate): void {
  const { code, isDefault, point, weight, rdataIndexes, seed, shift } = candidate
  let flags = isDefault ? FLAG_DEFAULT : 0
  if (weight !== undefined) flags |= FLAG_WEIGHT
  if (seed !== undefined) flags |= FLAG_SEED
  if (shift !== undefined) flags |= shift.isTarget ? FLAG_SHIFT | FLAG_TARGET : FLAG_SHIFT
  out.u8(flags)
  out.text8(code?.text ?? '')
  out.text8(point?.text ?? '')
  out.u16(rdataIndexes.length)
  for (const index of rdataIndexes) out.u16(index)
  if (weight !== undefined) out.u32(weight)
  for (const word of seed ?? []) out.u32(word)
  if (shift !== undefined) out.text8(String(shift.percent))
}
