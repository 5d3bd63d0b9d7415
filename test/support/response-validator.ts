import { keyTag } from '../../src/dns/dnssec/key-tag.ts'
import {
  algorithmOf,
  coveredType,
  expirationOf,
  inceptionOf,
  tagOf,
  verifySet,
} from '../../src/dns/dnssec/rrsig.ts'
import { Rcode } from '../../src/dns/iana/rcodes.ts'
import { printType, RRType } from '../../src/dns/iana/types.ts'
import type { Message, ResourceRecord } from '../../src/dns/message/message.ts'
import type { Response } from '../../src/dns/message/response.ts'
import { Section } from '../../src/dns/message/section.ts'
import {
  concatNames,
  equalNames,
  isSubdomain,
  labelOffsets,
  nameKey,
  printName,
} from '../../src/dns/name/name.ts'
import { type DenialProofs, readProofs } from './denial-validator.ts'

/*
 * Validates the answers of one zone as a resolver does (RFC 4035 section 5), without a cache.
 */

interface ValidatedZone {
  readonly apex: Uint8Array
  /** DNSKEY rdata. */
  readonly dnskeys: readonly Uint8Array[]
  /** Since the Unix epoch. */
  readonly nowSeconds: number
  /** True: keys of the zone roll, so there may be signatures by keys that are not published. */
  readonly isRolling?: boolean
}

interface ValidatedQuestion {
  readonly name: Uint8Array
  readonly type: number
}

interface AnsweredSet {
  readonly section: Section
  readonly owner: Uint8Array
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array[]
  readonly signatures: Uint8Array[]
}

/** Returns why a validator rejects a response to a query with DO; empty = it accepts it. */
export function faultsOf(
  response: Response,
  question: ValidatedQuestion,
  zone: ValidatedZone,
): string[] {
  return faultsOfSets(setsOf(recordsOf(response)), response.rcode, question, zone)
}

/** The same for a message. */
export function faultsOfMessage(message: Message, zone: ValidatedZone): string[] {
  const { answer, authority, additional, question, rcode } = message
  if (question === undefined) return ['the reply has no question']
  const sections = [answer, authority, additional] as const
  const records = sections.flatMap((all, section) =>
    all.map((record) => ({ ...record, section: section as Section })),
  )
  return faultsOfSets(setsOf(records), rcode, question, zone)
}

function faultsOfSets(
  sets: readonly AnsweredSet[],
  rcode: number,
  question: ValidatedQuestion,
  zone: ValidatedZone,
): string[] {
  const { apex } = zone
  const end = endOfChain(sets, question)
  const cut = sets.find(({ section, owner, type }) => {
    return section === Section.Authority && type === RRType.NS && !equalNames(owner, apex)
  })
  const faults: string[] = []
  const proofs = proofsOf(sets, apex, faults)
  if (proofs === undefined) return faults
  for (const set of sets) {
    const isUnsigned = set.signatures.length === 0
    if (isUnsigned && (set.section === Section.Additional || isMadeByDname(set, sets))) continue
    if (set === cut || (cut !== undefined && set.section === Section.Additional)) {
      const isGlue = isSubdomain(set.owner, cut.owner)
      if (isGlue && !isUnsigned) faults.push(`${what(set)} is signed, but of the zone below`)
      continue
    }
    faults.push(...faultsOfSet(set, zone))
    const encloser = encloserOfExpansion(set)
    if (encloser !== undefined) faults.push(proofs.expansion(set.owner, encloser))
  }
  if (cut !== undefined) faults.push(...faultsOfReferral(cut, end, sets, proofs))
  else faults.push(...faultsOfEnd(rcode, end, sets, { question, apex, proofs }))
  return faults.filter((fault) => fault !== '')
}

function proofsOf(
  sets: readonly AnsweredSet[],
  apex: Uint8Array,
  faults: string[],
): DenialProofs | undefined {
  const denials = sets.filter(({ type }) => type === RRType.NSEC || type === RRType.NSEC3)
  for (const set of denials) if (set.rdata.length > 1) faults.push(`${what(set)} has two records`)
  try {
    return readProofs(
      denials.map(({ owner, type, rdata }) => ({ owner, type, rdata: rdata[0]! })),
      apex,
    )
  } catch (error) {
    faults.push(String(error))
    return undefined
  }
}

/** Returns the name above the wildcard that made an answer; undefined = none did. */
function encloserOfExpansion({ owner, signatures }: AnsweredSet): Uint8Array | undefined {
  const offsets = labelOffsets(owner)
  const labels = signatures[0]?.[3] ?? offsets.length
  if (labels >= offsets.length - (isWildcard(owner) ? 1 : 0)) return undefined
  return owner.subarray(offsets[offsets.length - labels] ?? owner.length - 1)
}

/** True for the CNAME that a DNAME of the answer stands for (RFC 6672 section 5.3.1). */
function isMadeByDname(set: AnsweredSet, sets: readonly AnsweredSet[]): boolean {
  return set.type === RRType.CNAME && sets.some((one) => isRedirection(one, set))
}

function isRedirection({ section, owner, type, rdata }: AnsweredSet, cname: AnsweredSet): boolean {
  if (section !== Section.Answer || type !== RRType.DNAME) return false
  if (cname.owner.length <= owner.length || !isSubdomain(cname.owner, owner)) return false
  // With the root as its end.
  const relative = cname.owner.slice(0, cname.owner.length - owner.length + 1)
  relative[relative.length - 1] = 0
  const target = concatNames(relative, rdata[0]!)
  return target !== undefined && equalNames(target, cname.rdata[0]!)
}

function faultsOfReferral(
  cut: AnsweredSet,
  end: Uint8Array | undefined,
  sets: readonly AnsweredSet[],
  proofs: DenialProofs,
): string[] {
  const faults: string[] = []
  if (cut.signatures.length > 0) faults.push(`${what(cut)} is signed, but of the zone below`)
  if (end === undefined || !isSubdomain(end, cut.owner)) faults.push(`${what(cut)} is unrelated`)
  const isSigned = sets.some(({ section, owner, type }) => {
    return section === Section.Authority && type === RRType.DS && equalNames(owner, cut.owner)
  })
  return isSigned ? faults : [...faults, proofs.insecure(cut.owner)]
}

interface Asked {
  readonly question: ValidatedQuestion
  readonly apex: Uint8Array
  readonly proofs: DenialProofs
}

/** Checks what a reply says about the name at the end of a chain of aliases. */
function faultsOfEnd(
  rcode: number,
  end: Uint8Array | undefined,
  sets: readonly AnsweredSet[],
  { question: { type: qtype }, apex, proofs }: Asked,
): string[] {
  if (end === undefined || !isSubdomain(end, apex)) return []
  const isDname = ({ section, owner, type }: AnsweredSet): boolean => {
    return section === Section.Answer && type === RRType.DNAME && isSubdomain(end, owner)
  }
  // The target is too long for a name.
  if (rcode === Rcode.YXDOMAIN) return sets.some(isDname) ? [] : ['YXDOMAIN without DNAME']
  const isAnswered = sets.some(({ section, owner, type }) => {
    const isAsked = type === qtype || qtype === RRType.ANY
    return section === Section.Answer && isAsked && equalNames(owner, end)
  })
  if (isAnswered) return rcode === Rcode.NOERROR ? [] : [`an answer with rcode ${rcode}`]
  const hasSoa = sets.some(({ section, owner, type }) => {
    return section === Section.Authority && type === RRType.SOA && equalNames(owner, apex)
  })
  const faults = hasSoa ? [] : [`no SOA in a reply without ${printName(end)} ${printType(qtype)}`]
  if (rcode === Rcode.NXDOMAIN) return [...faults, proofs.nameError(end)]
  if (rcode !== Rcode.NOERROR) return [`rcode ${rcode}`]
  const fault = proofs.noData(end, qtype)
  return fault === '' ? faults : [...faults, `${printName(end)} ${printType(qtype)}: ${fault}`]
}

type SectionRecord = Pick<ResourceRecord, 'owner' | 'type' | 'ttlSeconds' | 'rdata'> & {
  readonly section: Section
}

function recordsOf(response: Response): SectionRecord[] {
  return Array.from({ length: response.count }, (_, i) => {
    const at = response.rdataOffset[i]!
    return {
      section: response.section[i] as Section,
      owner: nameAt(response.ownerBytes[i]!, response.ownerOffset[i]!),
      type: response.type[i]!,
      ttlSeconds: response.ttlSeconds[i]!,
      rdata: response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!),
    }
  })
}

function setsOf(records: readonly SectionRecord[]): AnsweredSet[] {
  const sets = new Map<string, AnsweredSet>()
  const signatures: { key: string; rdata: Uint8Array }[] = []
  for (const { section, owner, type, ttlSeconds, rdata } of records) {
    const covered = type === RRType.RRSIG ? coveredType(rdata) : type
    const key = `${section} ${covered} ${nameKey(owner)}`
    if (type === RRType.RRSIG) {
      signatures.push({ key, rdata })
      continue
    }
    const empty: AnsweredSet = { section, owner, type, ttlSeconds, rdata: [], signatures: [] }
    const set = sets.get(key) ?? empty
    set.rdata.push(rdata)
    sets.set(key, set)
  }
  for (const { key, rdata } of signatures) sets.get(key)?.signatures.push(rdata)
  return [...sets.values()]
}

function nameAt(bytes: Uint8Array, offset: number): Uint8Array {
  let end = offset
  while (bytes[end]! > 0) end += bytes[end]! + 1
  return bytes.slice(offset, end + 1)
}

/** All signatures must be valid, and not one of them only: others are superfluous. */
function faultsOfSet(set: AnsweredSet, zone: ValidatedZone): string[] {
  const { dnskeys, nowSeconds, isRolling = false } = zone
  const text = what(set)
  if (set.signatures.length === 0) return [`${text} has no signature`]
  const faults: string[] = []
  const algorithms = new Set(dnskeys.map((dnskey) => dnskey[3]!))
  for (const rrsig of set.signatures) {
    const key = dnskeys.find((dnskey) => keyTag(dnskey) === tagOf(rrsig))
    const isTimely = inceptionOf(rrsig) <= nowSeconds && nowSeconds < expirationOf(rrsig)
    if (!isTimely) faults.push(`the signature of ${text} is not valid now`)
    else if (key !== undefined && isRight(set, rrsig, key)) algorithms.delete(algorithmOf(rrsig))
    else if (key !== undefined) faults.push(`${text} has a wrong signature`)
    else if (!isRolling) faults.push(`${text} is signed by a key that is not published`)
  }
  // RFC 4035 section 2.2.
  for (const algorithm of algorithms) {
    faults.push(`${text} has no valid signature of algorithm ${algorithm}`)
  }
  return faults
}

function what({ owner, type }: AnsweredSet): string {
  return `${printName(owner)} ${printType(type)}`
}

/** Signatures that were checked: most answers have the same ones. */
const checked = new Map<string, boolean>()
const CHECKED_MAX = 10_000

function isRight(set: AnsweredSet, rrsig: Uint8Array, dnskey: Uint8Array): boolean {
  const parts = [set.owner, rrsig, dnskey, ...set.rdata]
  const id = parts.map((part) => Buffer.from(part).toString('latin1')).join('\n')
  const known = checked.get(id)
  if (known !== undefined) return known
  if (checked.size > CHECKED_MAX) checked.clear()
  const result = verifySet(set, rrsig, dnskey)
  checked.set(id, result)
  return result
}

function isWildcard(name: Uint8Array): boolean {
  return name[0] === 1 && name[1] === 0x2a
}

/** Returns the name that is asked at last; undefined = a loop. */
function endOfChain(
  sets: readonly AnsweredSet[],
  { name, type }: { readonly name: Uint8Array; readonly type: number },
): Uint8Array | undefined {
  let at = name
  for (let steps = 0; steps < 20; steps++) {
    const alias = sets.find((set) => {
      const isHere = set.section === Section.Answer && equalNames(set.owner, at)
      return isHere && set.type === RRType.CNAME && type !== RRType.CNAME && type !== RRType.ANY
    })
    if (alias === undefined) return at
    at = alias.rdata[0]!
  }
  return undefined
}
