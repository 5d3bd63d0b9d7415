import { createHash } from 'node:crypto'
import { runWhole } from '../../src/base/slices.ts'
import { composeNsec, composeNsec3, composeNsec3Param } from '../../src/dns/dnssec/denial-rdata.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { compareNames } from '../../src/dns/name/name.ts'
import { type PossibleAnswer, possibleAnswers } from '../../src/steering/possible-answers.ts'
import {
  encodeDirectory,
  proofBy,
  type SignedType,
} from '../../src/zone/image/signature-directory.ts'
import type { RRsetData, ZoneId } from '../../src/zone/image/types.ts'
import type { ZoneImage } from '../../src/zone/image/writer.ts'
import { listRRsets } from './zone-contents.ts'
import { text, wire } from './zone-names.ts'

/*
 * Signs a zone image with signatures that say what they sign. They take the place of real ones: a test reads them.
 */

/** What a signature signs. */
export interface Signed {
  readonly owner: string
  readonly type: number
  readonly ttlSeconds: number
  /** In hexadecimal, sorted. */
  readonly rdata: readonly string[]
  /** Number of the signing key. */
  readonly key: number
}

export interface ToyZone {
  readonly image: ZoneImage
  readonly zone: ZoneId
  readonly apex: string
}

export interface ToyPolicy {
  readonly keys: number
  readonly isHashed: boolean
}

export const hexOf = (octets: Uint8Array): string => Buffer.from(octets).toString('hex')

export function readSignature(rdata: Uint8Array): Signed {
  return JSON.parse(Buffer.from(rdata.subarray(2)).toString())
}

export function hashOf(name: string): string {
  const digest = createHash('sha1').update(wire(name)).digest()
  let bits = ''
  for (const octet of digest) bits += octet.toString(2).padStart(8, '0')
  const digits = bits.match(/.{5}/g)!.map((five) => Number.parseInt(five, 2).toString(32))
  return digits.join('')
}

/** All records of one name, while they are signed. */
interface ToyName {
  readonly sets: Map<number, RRsetData>
  /** By type: the number of the NSEC or NSEC3 answer that lacks it. */
  readonly proofs: Map<number, number>
}

/** Signs everything in the image, with a chain, and publishes it. All names must be authoritative, without cuts. */
export function signToyZone({ image, zone, apex }: ToyZone, { keys, isHashed }: ToyPolicy): void {
  const names = new Map<string, ToyName>()
  const nameOf = (name: string): ToyName => {
    if (!names.has(name)) names.set(name, { sets: new Map(), proofs: new Map() })
    return names.get(name)!
  }
  for (const { owner, ...set } of listRRsets(image.reader(), zone)) {
    nameOf(text(owner)).sets.set(set.type, set)
  }
  for (const { sets, proofs } of names.values()) fillProofs(sets, proofs)
  if (isHashed) {
    nameOf(apex).sets.set(RRType.NSEC3PARAM, plain(RRType.NSEC3PARAM, [composeNsec3Param()]))
    addHashedChain(apex, names)
  } else {
    addChain(names)
  }
  for (const [name, { sets, proofs }] of names) {
    const signatures = new ToySignatures(name, keys)
    const types = [...sets.keys()].sort((a, b) => a - b)
    const signed = types.map((type) => signatures.add(sets.get(type)!, proofs.get(type)))
    // A hashed zone has nothing to sign at a name without records for anyone.
    if (signatures.rdata.length > 0) {
      const steering = encodeDirectory(signed)
      sets.set(RRType.RRSIG, { ...plain(RRType.RRSIG, signatures.rdata), steering })
    }
    for (const set of sets.values()) image.putRRset(zone, wire(name), set)
  }
  runWhole(image.updateChain(zone))
  image.publish()
}

function plain(type: number, rdata: readonly Uint8Array[]): RRsetData {
  return { type, ttlSeconds: 60, rdata }
}

function fillProofs(sets: ReadonlyMap<number, RRsetData>, proofs: Map<number, number>): void {
  for (const [type, { steering }] of sets) {
    const answers = steering === undefined ? [] : possibleAnswers(steering)!.answers
    const isEmpty = ({ rdataIndexes }: PossibleAnswer): boolean => rdataIndexes.length === 0
    if (answers.every(isEmpty)) continue
    if (answers.some(isEmpty)) proofs.set(type, proofs.size + 1)
  }
}

/** The lists of types of a name: that of its link in the chain, then one without each type that may have no records. */
function typeLists({ sets, proofs }: ToyName, own: readonly number[]): number[][] {
  const types = [...sets.keys(), ...own].filter((type) => !isNeverThere(sets.get(type)))
  return [types, ...[...proofs.keys()].map((lacking) => types.filter((type) => type !== lacking))]
}

function isNeverThere(set: RRsetData | undefined): boolean {
  if (set?.steering === undefined) return false
  return possibleAnswers(set.steering)!.answers.every(
    ({ rdataIndexes }) => rdataIndexes.length === 0,
  )
}

function addChain(names: ReadonlyMap<string, ToyName>): void {
  const owners = [...names.keys()].sort((a, b) => compareNames(wire(a), wire(b)))
  for (const [i, owner] of owners.entries()) {
    const name = names.get(owner)!
    const next = wire(owners[(i + 1) % owners.length]!)
    const lists = typeLists(name, [RRType.RRSIG, RRType.NSEC])
    name.sets.set(
      RRType.NSEC,
      plain(
        RRType.NSEC,
        lists.map((types) => composeNsec(next, types)),
      ),
    )
  }
}

function addHashedChain(apex: string, names: Map<string, ToyName>): void {
  const existing = new Set<string>()
  for (const name of names.keys()) {
    for (let at = name; at !== apex; at = at.slice(at.indexOf('.') + 1)) existing.add(at)
  }
  existing.add(apex)
  const byHash = new Map([...existing].map((name) => [hashOf(name), name]))
  const hashes = [...byHash.keys()].sort()
  const lists = hashes.map((hash) => {
    const name = names.get(byHash.get(hash)!)
    const isSigned = name !== undefined && ![...name.sets.values()].every(isNeverThere)
    return name === undefined ? [[]] : typeLists(name, isSigned ? [RRType.RRSIG] : [])
  })
  for (const [i, hash] of hashes.entries()) {
    const next = Buffer.from(hashes[(i + 1) % hashes.length]!, 'latin1')
    const label = Uint8Array.of(next.length, ...next)
    const rdata = lists[i]!.map((types) => composeNsec3(label, types, { isOptOut: false }))
    const sets = new Map([[RRType.NSEC3 as number, plain(RRType.NSEC3, rdata)]])
    names.set(`${hash}.${apex}`, { sets, proofs: new Map() })
  }
}

/** The signatures of one name. */
class ToySignatures {
  readonly rdata: Uint8Array[] = []
  readonly #owner: string
  readonly #keys: number
  readonly #indexes = new Map<string, number>()

  constructor(owner: string, keys: number) {
    this.#owner = owner
    this.#keys = keys
  }

  /** `proof`: number of the answer that lacks the type; undefined = no answer has no records, or all. */
  add(set: RRsetData, proof = 0): SignedType {
    const { type, ttlSeconds, rdata, steering } = set
    const all = rdata.map((_, i) => i)
    const isProof = type === RRType.NSEC || type === RRType.NSEC3
    const each = all.map((i) => ({ ttlSeconds, rdataIndexes: [i] }))
    const steered = steering === undefined ? undefined : possibleAnswers(steering)!
    const severalProofs = isProof && rdata.length > 1 ? { answers: each, default: 0 } : undefined
    const possible = steered ?? severalProofs ?? { answers: [], default: -1 }
    const usual = possible.answers[possible.default] ?? { ttlSeconds, rdataIndexes: all }
    const sign = (answer: PossibleAnswer): number => this.#sign(set, answer, proof)
    return {
      type,
      signaturesPerAnswer: this.#keys,
      default: {
        signature: sign(usual),
        ttlSeconds: usual.ttlSeconds,
        rdataIndexes: possible.answers.length === 0 ? [] : usual.rdataIndexes,
      },
      answers: possible.answers.map(sign),
    }
  }

  #sign(
    { type, rdata }: RRsetData,
    { ttlSeconds, rdataIndexes }: PossibleAnswer,
    proof: number,
  ): number {
    if (rdataIndexes.length === 0) return proofBy(proof)
    const signed = {
      owner: this.#owner,
      type,
      ttlSeconds,
      rdata: rdataIndexes.map((i) => hexOf(rdata[i]!)).sort(),
    }
    const known = this.#indexes.get(JSON.stringify(signed))
    if (known !== undefined) return known
    const first = this.rdata.length
    this.#indexes.set(JSON.stringify(signed), first)
    for (let key = 0; key < this.#keys; key++) {
      const json = Buffer.from(JSON.stringify({ ...signed, key }))
      this.rdata.push(Buffer.concat([Uint8Array.of(type >> 8, type & 255), json]))
    }
    return first
  }
}
