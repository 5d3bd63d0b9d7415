import { keyTag } from '../../src/dns/dnssec/key-tag.ts'
import {
  coveredType,
  expirationOf,
  inceptionOf,
  tagOf,
  verifySet,
} from '../../src/dns/dnssec/rrsig.ts'
import { Rcode } from '../../src/dns/iana/rcodes.ts'
import { printType, RRType } from '../../src/dns/iana/types.ts'
import type { Response } from '../../src/dns/message/response.ts'
import { Section } from '../../src/dns/message/section.ts'
import {
  compareNames,
  equalNames,
  isSubdomain,
  labelOffsets,
  nameKey,
  parentName,
  printName,
} from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'

/*
 * Validates the answers of one zone as a resolver does (RFC 4035 section 5), without a cache. Zones have NSEC.
 */

interface ValidatedZone {
  readonly apex: Uint8Array
  /** DNSKEY rdata. */
  readonly dnskeys: readonly Uint8Array[]
  /** Since the Unix epoch. */
  readonly nowSeconds: number
}

interface AnsweredSet {
  readonly section: Section
  readonly owner: Uint8Array
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array[]
  readonly signatures: Uint8Array[]
}

interface Nsec {
  readonly owner: Uint8Array
  readonly next: Uint8Array
  /** Mnemonics. */
  readonly types: ReadonlySet<string>
}

/** Returns why a validator rejects a response to a query with DO; empty = it accepts it. */
export function faultsOf(
  response: Response,
  question: { readonly name: Uint8Array; readonly type: number },
  { apex, dnskeys, nowSeconds }: ValidatedZone,
): string[] {
  const sets = setsOf(response)
  const faults: string[] = []
  const expanded: Uint8Array[] = []
  for (const set of sets) {
    if (set.section === Section.Additional && set.signatures.length === 0) continue
    faults.push(...faultsOfSet(set, dnskeys, nowSeconds))
    const labels = set.signatures[0]?.[3] ?? 0
    const isExpanded = labels < labelOffsets(set.owner).length - (isWildcard(set.owner) ? 1 : 0)
    if (set.section === Section.Answer && isExpanded) expanded.push(set.owner)
  }
  const proofs = sets.filter(({ type }) => type === RRType.NSEC).map(nsecOf)
  for (const owner of expanded) {
    if (!proofs.some((one) => covers(one, owner, apex))) {
      faults.push(`no proof that ${printName(owner)} itself does not exist`)
    }
  }
  const end = endOfChain(sets, question)
  if (end === undefined || !isSubdomain(end, apex)) return faults
  const isAnswered = sets.some(({ section, owner, type }) => {
    const isAsked = type === question.type || question.type === RRType.ANY
    return section === Section.Answer && isAsked && equalNames(owner, end)
  })
  if (isAnswered || question.type === RRType.CNAME) return faults
  if (response.rcode === Rcode.NXDOMAIN) faults.push(...faultsOfNameError(end, apex, proofs))
  else faults.push(...faultsOfNoData(end, question.type, apex, proofs))
  return faults
}

function setsOf(response: Response): AnsweredSet[] {
  const sets = new Map<string, AnsweredSet>()
  const signatures: { key: string; rdata: Uint8Array }[] = []
  for (let i = 0; i < response.count; i++) {
    const section = response.section[i] as Section
    const owner = nameAt(response.ownerBytes[i]!, response.ownerOffset[i]!)
    const at = response.rdataOffset[i]!
    const rdata = response.rdataBytes[i]!.slice(at, at + response.rdataOctets[i]!)
    const type = response.type[i]!
    const covered = type === RRType.RRSIG ? coveredType(rdata) : type
    const key = `${section} ${covered} ${nameKey(owner)}`
    if (type === RRType.RRSIG) {
      signatures.push({ key, rdata })
      continue
    }
    const ttlSeconds = response.ttlSeconds[i]!
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
function faultsOfSet(
  set: AnsweredSet,
  dnskeys: readonly Uint8Array[],
  nowSeconds: number,
): string[] {
  const what = `${printName(set.owner)} ${printType(set.type)}`
  if (set.signatures.length === 0) return [`${what} has no signature`]
  return set.signatures.flatMap((rrsig) => {
    const key = dnskeys.find((dnskey) => keyTag(dnskey) === tagOf(rrsig))
    const isTimely = inceptionOf(rrsig) <= nowSeconds && nowSeconds < expirationOf(rrsig)
    if (!isTimely) return [`the signature of ${what} is not valid now`]
    if (key === undefined) return [`${what} is signed by a key that is not published`]
    return isRight(set, rrsig, key) ? [] : [`${what} has a wrong signature`]
  })
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

function nsecOf({ owner, rdata }: AnsweredSet): Nsec {
  const next = nameAt(rdata[0]!, 0)
  return { owner, next, types: new Set(printRdata(RRType.NSEC, rdata[0]!).split(' ').slice(1)) }
}

/** True if the record proves that a name does not exist. The name may be an empty non-terminal. */
function covers({ owner, next }: Nsec, name: Uint8Array, apex: Uint8Array): boolean {
  const isAfter = compareNames(owner, name) < 0
  return isAfter && (equalNames(next, apex) || compareNames(name, next) < 0)
}

function faultsOfNameError(name: Uint8Array, apex: Uint8Array, proofs: readonly Nsec[]): string[] {
  const text = printName(name)
  const covering = proofs.find((one) => covers(one, name, apex))
  if (covering === undefined) return [`no proof that ${text} does not exist`]
  if (isSubdomain(covering.next, name)) return [`${text} exists as an empty non-terminal`]
  const wildcard = wildcardOf(encloserOf(name, covering))
  const isDenied = proofs.some((one) => covers(one, wildcard, apex))
  return isDenied ? [] : [`no proof that ${printName(wildcard)} does not exist`]
}

function faultsOfNoData(
  name: Uint8Array,
  type: number,
  apex: Uint8Array,
  proofs: readonly Nsec[],
): string[] {
  const what = `${printName(name)} ${printType(type)}`
  const own = proofs.find(({ owner }) => equalNames(owner, name))
  if (own !== undefined) return lacks(own, type) ? [] : [`the proof of ${what} has the type`]
  const covering = proofs.find((one) => covers(one, name, apex))
  if (covering === undefined) return [`no proof of ${what}`]
  if (isSubdomain(covering.next, name)) return []
  const wildcard = wildcardOf(encloserOf(name, covering))
  const ofWildcard = proofs.find(({ owner }) => equalNames(owner, wildcard))
  if (ofWildcard !== undefined && lacks(ofWildcard, type)) return []
  return [`no proof that ${printName(wildcard)} has no ${printType(type)}`]
}

function lacks({ types }: Nsec, type: number): boolean {
  return !types.has(printType(type)) && !types.has('CNAME')
}

/** Returns the closest encloser of a name that an NSEC record covers. */
function encloserOf(name: Uint8Array, { owner, next }: Nsec): Uint8Array {
  let encloser = parentName(name)
  while (!isSubdomain(owner, encloser) && !isSubdomain(next, encloser)) {
    encloser = parentName(encloser)
  }
  return encloser
}

function wildcardOf(encloser: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from('\x01*', 'latin1'), encloser])
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
      return isHere && set.type === RRType.CNAME && type !== RRType.CNAME
    })
    if (alias === undefined) return at
    at = alias.rdata[0]!
  }
  return undefined
}
