import { composeNsec, composeNsec3 } from '../../../src/dns/dnssec/denial-rdata.ts'
import type { SigningKey } from '../../../src/dns/dnssec/dnskey.ts'
import { Nsec3Hasher } from '../../../src/dns/dnssec/nsec3.ts'
import { coveredType, verifySet } from '../../../src/dns/dnssec/rrsig.ts'
import { printType, RRType } from '../../../src/dns/iana/types.ts'
import {
  compareNames,
  isSubdomain,
  nameKey,
  parentName,
  printName,
} from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { possibleAnswers } from '../../../src/steering/possible-answers.ts'
import {
  decodeDirectory,
  findSignedType,
  signatureOf,
} from '../../../src/zone/image/signature-directory.ts'
import type { OwnedRRset } from '../../support/zone-contents.ts'
import { APEX, KSK, MADE, ZSK } from './signing-stage.ts'

/*
 * A second implementation of what a signed zone has, straight from the RFCs, for all names at once.
 */

/** The types that the zone signing key does not sign alone. */
const SIGNERS: ReadonlyMap<number, readonly SigningKey[]> = new Map([
  [RRType.DNSKEY, [KSK]],
  [RRType.CDS, [KSK, ZSK]],
  [RRType.CDNSKEY, [KSK, ZSK]],
])
const AT_CUT: readonly number[] = [RRType.NS, RRType.DS]

/** The RRsets of one name. */
interface Name {
  readonly owner: Uint8Array
  readonly sets: OwnedRRset[]
}

/** Returns the authoritative names with their RRsets, in canonical order. At zone cuts: NS and DS. */
function authoritative(contents: readonly OwnedRRset[]): Name[] {
  const names = new Map<string, Name>()
  for (const set of contents) {
    const isMade =
      MADE.includes(set.type) && (set.owner.length > APEX.length || MADE.indexOf(set.type) < 3)
    if (isMade) continue
    const name = names.get(nameKey(set.owner)) ?? { owner: set.owner, sets: [] }
    name.sets.push(set)
    names.set(nameKey(set.owner), name)
  }
  const all = [...names.values()]
  const hiding = all.filter(({ owner, sets }) =>
    sets.some(
      ({ type }) => type === RRType.DNAME || (type === RRType.NS && owner.length > APEX.length),
    ),
  )
  return all
    .filter(({ owner }) => {
      return !hiding.some((one) => one.owner.length < owner.length && isSubdomain(owner, one.owner))
    })
    .map((name) => {
      const isCut =
        name.owner.length > APEX.length && name.sets.some(({ type }) => type === RRType.NS)
      return isCut ? { ...name, sets: name.sets.filter(({ type }) => AT_CUT.includes(type)) } : name
    })
    .sort((a, b) => compareNames(a.owner, b.owner))
}

function isCut({ owner, sets }: Name): boolean {
  return owner.length > APEX.length && sets.some(({ type }) => type === RRType.NS)
}

/** Returns the lists of types of a name: all that can have records, then one without each that may have none. */
function typeListsOf(sets: readonly OwnedRRset[]): number[][] {
  const answersOf = ({ steering }: OwnedRRset): number[] => {
    if (steering === undefined) return [1]
    return possibleAnswers(steering)!.answers.map(({ rdataIndexes }) => rdataIndexes.length)
  }
  const present = sets.filter((set) => answersOf(set).some((count) => count > 0))
  const types = present.map(({ type }) => type)
  const lists = [types]
  for (const set of present.toSorted((a, b) => a.type - b.type)) {
    if (answersOf(set).includes(0)) lists.push(types.filter((type) => type !== set.type))
  }
  return lists
}

/** Returns `owner type rdata` of each NSEC record that the zone must have. */
export function nsecOf(contents: readonly OwnedRRset[]): string[] {
  const names = authoritative(contents)
  return names.flatMap(({ owner, sets }, i) => {
    const next = names[(i + 1) % names.length]!.owner
    return typeListsOf(sets).map((types) => {
      const rdata = composeNsec(next, [...types, RRType.NSEC, RRType.RRSIG])
      return `${printName(owner)} ${printRdata(RRType.NSEC, rdata)}`
    })
  })
}

/** The same of NSEC3, with empty non-terminals. */
export function nsec3Of(contents: readonly OwnedRRset[], isOptOut: boolean): string[] {
  const names = new Map(authoritative(contents).map((name) => [nameKey(name.owner), name]))
  for (const { owner } of [...names.values()]) {
    for (let above = owner; above.length > APEX.length; above = parentName(above)) {
      if (!names.has(nameKey(above))) names.set(nameKey(above), { owner: above, sets: [] })
    }
  }
  const hasher = new Nsec3Hasher()
  const hashed = [...names.values()]
    .filter((name) => !isOptOut || !isCut(name) || name.sets.some(({ type }) => type === RRType.DS))
    .map((name) => {
      hasher.hash(name.owner, 0, name.owner.length, false, new Uint8Array([1, 0, 0, 0, 0]), 0)
      return { ...name, label: hasher.label.slice() }
    })
    .sort((a, b) => Buffer.compare(a.label, b.label))
  return hashed.flatMap((name, i) => {
    const next = hashed[(i + 1) % hashed.length]!.label
    const isDelegation = isCut(name) && !name.sets.some(({ type }) => type === RRType.DS)
    return typeListsOf(name.sets).map((types, _, [all]) => {
      const signed = isDelegation || all!.length === 0 ? types : [...types, RRType.RRSIG]
      const rdata = composeNsec3(next, signed, { isOptOut })
      return `${printName(Buffer.concat([name.label, APEX]))} ${printRdata(RRType.NSEC3, rdata)}`
    })
  })
}

/** The answers of an RRset: their records and TTLs; undefined = no records. */
function answersOf(set: OwnedRRset): (OwnedRRset | undefined)[] {
  const { steering, rdata, type } = set
  if (type === RRType.NSEC || type === RRType.NSEC3)
    return rdata.map((one) => ({ ...set, rdata: [one] }))
  if (steering === undefined) return [set]
  return possibleAnswers(steering)!.answers.map(({ ttlSeconds, rdataIndexes }) => {
    if (rdataIndexes.length === 0) return undefined
    return { ...set, ttlSeconds, rdata: rdataIndexes.map((index) => rdata[index]!) }
  })
}

/** Returns what is wrong with the signatures: each answer of an authoritative RRset has one of each of its keys. */
export function faultsOfSignatures(contents: readonly OwnedRRset[]): string[] {
  const faults: string[] = []
  const expected = new Set<string>()
  const rrsigs = contents.filter(({ type }) => type === RRType.RRSIG)
  const rrsigsOf = new Map(rrsigs.map((set) => [nameKey(set.owner), set]))
  const denials = contents.filter(({ type }) => type === RRType.NSEC || type === RRType.NSEC3)
  const signed = authoritative(contents).flatMap((name) => {
    return isCut(name) ? name.sets.filter(({ type }) => type === RRType.DS) : name.sets
  })
  for (const set of [...denials, ...signed]) {
    const key = `${nameKey(set.owner)} ${set.type}`
    const answers = answersOf(set)
    if (answers.some((answer) => answer !== undefined)) expected.add(key)
    const signers = SIGNERS.get(set.type) ?? [ZSK]
    const own = rrsigsOf.get(nameKey(set.owner))
    const words = own?.steering ?? new Uint32Array(1)
    const block = findSignedType(words, 0, set.type)
    for (const [i, answer] of answers.entries()) {
      if (answer === undefined) continue
      const at = block === 0 ? -1 : signatureOf(words, block, i)
      const isSigned = signers.every(({ dnskey }, k) => {
        const rrsig = own?.rdata[at + k]
        return rrsig !== undefined && verifySet(answer, rrsig, dnskey)
      })
      if (!isSigned)
        faults.push(`${printName(set.owner)} ${printType(set.type)} answer ${i}: ${at}`)
    }
  }
  for (const { owner, rdata, steering } of rrsigs) {
    const types = decodeDirectory(steering!, 0)
    const used = new Set(
      types.flatMap(({ signaturesPerAnswer, answers, ...type }) => {
        const firsts = [type.default.signature, ...answers]
        return firsts.flatMap((first) =>
          Array.from({ length: signaturesPerAnswer }, (_, k) => (first ?? -1) + k),
        )
      }),
    )
    for (const [i, rrsig] of rdata.entries()) {
      const key = `${nameKey(owner)} ${coveredType(rrsig)}`
      if (!expected.has(key) || !used.has(i)) faults.push(`${key} has a signature too many`)
    }
  }
  return faults
}
