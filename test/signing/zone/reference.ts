import { composeNsec, composeNsec3 } from '../../../src/dns/dnssec/denial-rdata.ts'
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
import type { OwnedRRset } from '../../support/zone-contents.ts'
import { APEX, KSK, MADE, ZSK } from './signing-stage.ts'

/*
 * A second implementation of what a signed zone has, straight from the RFCs, for all names at once.
 */

const KEY_TYPES: readonly number[] = [RRType.DNSKEY, RRType.CDS, RRType.CDNSKEY]
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

/** Returns `owner type rdata` of each NSEC record that the zone must have. */
export function nsecOf(contents: readonly OwnedRRset[]): string[] {
  const names = authoritative(contents)
  return names.map(({ owner, sets }, i) => {
    const types = [...sets.map(({ type }) => type), RRType.NSEC, RRType.RRSIG]
    const next = names[(i + 1) % names.length]!.owner
    return `${printName(owner)} ${printRdata(RRType.NSEC, composeNsec(next, types))}`
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
  return hashed.map((name, i) => {
    const types = name.sets.map(({ type }) => type)
    const signed = isCut(name) ? types.includes(RRType.DS) : types.length > 0
    const next = hashed[(i + 1) % hashed.length]!.label
    const rdata = composeNsec3(next, signed ? [...types, RRType.RRSIG] : types, { isOptOut })
    return `${printName(Buffer.concat([name.label, APEX]))} ${printRdata(RRType.NSEC3, rdata)}`
  })
}

/** Returns what is wrong with the signatures: each authoritative RRset has exactly one valid one per key. */
export function faultsOfSignatures(contents: readonly OwnedRRset[]): string[] {
  const faults: string[] = []
  const expected = new Set<string>()
  const rrsigs = new Map<string, Uint8Array[]>()
  for (const set of contents) {
    if (set.type !== RRType.RRSIG) continue
    for (const rdata of set.rdata) {
      const key = `${nameKey(set.owner)} ${coveredType(rdata)}`
      rrsigs.set(key, [...(rrsigs.get(key) ?? []), rdata])
    }
  }
  const denials = contents.filter(({ type }) => type === RRType.NSEC || type === RRType.NSEC3)
  const signed = authoritative(contents).flatMap((name) => {
    return isCut(name) ? name.sets.filter(({ type }) => type === RRType.DS) : name.sets
  })
  for (const set of [...denials, ...signed]) {
    const key = `${nameKey(set.owner)} ${set.type}`
    expected.add(key)
    const dnskey = KEY_TYPES.includes(set.type) ? KSK : ZSK
    const own = rrsigs.get(key) ?? []
    const isSigned = own.length === 1 && verifySet(set, own[0]!, dnskey.dnskey)
    if (!isSigned) faults.push(`${printName(set.owner)} ${printType(set.type)}: ${own.length}`)
  }
  for (const key of rrsigs.keys()) if (!expected.has(key)) faults.push(`${key} is signed`)
  return faults
}
