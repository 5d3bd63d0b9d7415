import { createHash } from 'node:crypto'
import { printType, RRType } from '../../src/dns/iana/types.ts'
import {
  compareNames,
  equalNames,
  isSubdomain,
  labelOffsets,
  lowerName,
  parentName,
  printName,
} from '../../src/dns/name/name.ts'

/*
 * Checks proofs of absence as a validator does, without our code for NSEC and NSEC3: RFC 4035 section 5.4, RFC 5155
 * section 8, RFC 6840 section 4, RFC 9824.
 */

/** An RRset of type NSEC or NSEC3 whose signature was checked, with one record. */
export interface ProofRecord {
  /** Wire form. */
  readonly owner: Uint8Array
  readonly type: number
  readonly rdata: Uint8Array
}

interface Nsec {
  readonly owner: Uint8Array
  readonly next: Uint8Array
  readonly types: ReadonlySet<number>
}

interface Nsec3 {
  /** Hashes. */
  readonly owner: Buffer
  readonly next: Buffer
  readonly isOptOut: boolean
  readonly iterations: number
  readonly salt: Buffer
  readonly types: ReadonlySet<number>
}

/** What the records of one reply prove. Methods return what is wrong with a proof; '' = nothing. */
export interface DenialProofs {
  /** The name does not exist, and no wildcard would make it. */
  nameError(name: Uint8Array): string
  /** The name, or the wildcard that would make it, lacks the type. */
  noData(name: Uint8Array, type: number): string
  /** The name itself does not exist; the wildcard below `encloser` made the answer. */
  expansion(name: Uint8Array, encloser: Uint8Array): string
  /** The name is a delegation without DS. */
  insecure(name: Uint8Array): string
}

/** Reads the proofs of a reply. @throws Error if NSEC and NSEC3 are mixed. */
export function readProofs(records: readonly ProofRecord[], apex: Uint8Array): DenialProofs {
  const nsec3 = records.filter(({ type }) => type === RRType.NSEC3)
  if (nsec3.length === 0) return new NsecProofs(records.map(readNsec), apex)
  if (nsec3.length < records.length) throw new Error('NSEC and NSEC3 in one reply')
  return new Nsec3Proofs(nsec3.map(readNsec3), apex)
}

/** NSEC, also of compact denial. */
class NsecProofs implements DenialProofs {
  readonly #records: readonly Nsec[]
  readonly #apex: Uint8Array

  constructor(records: readonly Nsec[], apex: Uint8Array) {
    this.#records = records
    this.#apex = apex
  }

  nameError(name: Uint8Array): string {
    const own = this.#at(name)
    if (own !== undefined) return provesNoName(own) ? '' : `${printName(name)} exists`
    const covering = this.#covering(name)
    if (covering === undefined) return `no proof that ${printName(name)} does not exist`
    if (isSubdomain(covering.next, name)) return `${printName(name)} is an empty non-terminal`
    const wildcard = wildcardOf(encloserOf(name, covering))
    if (this.#covering(wildcard) !== undefined) return ''
    return `no proof that ${printName(wildcard)} does not exist`
  }

  noData(name: Uint8Array, type: number): string {
    const own = this.#at(name)
    if (own !== undefined) return faultOfTypes(own.types, type, equalNames(name, this.#apex))
    const covering = this.#covering(name)
    if (covering === undefined) return `no proof about ${printName(name)}`
    if (isSubdomain(covering.next, name)) return ''
    const wildcard = wildcardOf(encloserOf(name, covering))
    const ofWildcard = this.#at(wildcard)
    if (ofWildcard === undefined) {
      const isEmpty = isSubdomain(this.#covering(wildcard)?.next ?? this.#apex, wildcard)
      return isEmpty ? '' : `no proof about ${printName(wildcard)}`
    }
    return faultOfTypes(ofWildcard.types, type, false)
  }

  expansion(name: Uint8Array, encloser: Uint8Array): string {
    const covering = this.#covering(name)
    if (covering === undefined) return `no proof that ${printName(name)} itself does not exist`
    const found = encloserOf(name, covering)
    return equalNames(found, encloser) ? '' : `the closest encloser is ${printName(found)}`
  }

  insecure(name: Uint8Array): string {
    const own = this.#at(name)
    if (own === undefined) return `no proof that ${printName(name)} has no DS`
    return faultOfDelegation(own.types)
  }

  #at(name: Uint8Array): Nsec | undefined {
    return this.#records.find(({ owner }) => equalNames(owner, name))
  }

  #covering(name: Uint8Array): Nsec | undefined {
    return this.#records.find(({ owner, next, types }) => {
      // A record of the zone above the cut, or of a DNAME, says nothing about names below (RFC 6840 section 4.1).
      if (isSubdomain(name, owner) && hidesBelow(types)) return false
      const isLast = compareNames(next, owner) <= 0
      if (isLast && !equalNames(next, this.#apex)) return false
      return compareNames(owner, name) < 0 && (isLast || compareNames(name, next) < 0)
    })
  }
}

class Nsec3Proofs implements DenialProofs {
  readonly #records: readonly Nsec3[]
  readonly #apex: Uint8Array

  constructor(records: readonly Nsec3[], apex: Uint8Array) {
    this.#records = records
    this.#apex = apex
    const [first] = records
    for (const { iterations, salt } of records) {
      if (iterations !== first!.iterations || !salt.equals(first!.salt)) {
        throw new Error('NSEC3 records with different parameters')
      }
    }
  }

  nameError(name: Uint8Array): string {
    if (this.#at(name) !== undefined) return `${printName(name)} exists`
    const encloser = this.#encloser(name)
    if (encloser === undefined) return `no closest encloser of ${printName(name)}`
    const closer = this.#covering(nextCloser(name, encloser))
    if (closer === undefined) return `no proof about the next closer name of ${printName(name)}`
    const wildcard = wildcardOf(encloser)
    if (this.#covering(wildcard) !== undefined) return ''
    return `no proof that ${printName(wildcard)} does not exist`
  }

  noData(name: Uint8Array, type: number): string {
    const own = this.#at(name)
    if (own !== undefined) return faultOfTypes(own.types, type, equalNames(name, this.#apex))
    const encloser = this.#encloser(name)
    if (encloser === undefined) return `no closest encloser of ${printName(name)}`
    const closer = this.#covering(nextCloser(name, encloser))
    if (closer === undefined) return `no proof about the next closer name of ${printName(name)}`
    const ofWildcard = this.#at(wildcardOf(encloser))
    if (ofWildcard !== undefined) return faultOfTypes(ofWildcard.types, type, false)
    // RFC 5155 section 8.6; and an empty name may be left out if it has only delegations without DS below it.
    return closer.isOptOut ? '' : `no proof about the wildcard below ${printName(encloser)}`
  }

  expansion(name: Uint8Array, encloser: Uint8Array): string {
    const closer = nextCloser(name, encloser)
    if (this.#covering(closer) !== undefined) return ''
    return `no proof that ${printName(closer)} does not exist`
  }

  insecure(name: Uint8Array): string {
    const own = this.#at(name)
    if (own !== undefined) return faultOfDelegation(own.types)
    const encloser = this.#encloser(name)
    if (encloser === undefined) return `no closest encloser of ${printName(name)}`
    const closer = this.#covering(nextCloser(name, encloser))
    return closer?.isOptOut ? '' : `no proof that ${printName(name)} has no DS`
  }

  #at(name: Uint8Array): Nsec3 | undefined {
    const hash = this.#hash(name)
    return this.#records.find(({ owner }) => owner.equals(hash))
  }

  #covering(name: Uint8Array): Nsec3 | undefined {
    const hash = this.#hash(name)
    return this.#records.find(({ owner, next }) => {
      const isAfter = Buffer.compare(owner, hash) < 0
      const isBefore = Buffer.compare(hash, next) < 0
      return Buffer.compare(next, owner) <= 0 ? isAfter || isBefore : isAfter && isBefore
    })
  }

  /** RFC 5155 section 8.3. */
  #encloser(name: Uint8Array): Uint8Array | undefined {
    for (let above = name; above.length > this.#apex.length; ) {
      above = parentName(above)
      const found = this.#at(above)
      if (found !== undefined) return hidesBelow(found.types) ? undefined : above
    }
    return undefined
  }

  #hash(name: Uint8Array): Buffer {
    const { iterations, salt } = this.#records[0]!
    let hash: Uint8Array = lowerName(name)
    for (let i = 0; i <= iterations; i++) {
      hash = createHash('sha1').update(hash).update(salt).digest()
    }
    return Buffer.from(hash)
  }
}

/** True if the name is a delegation or has a DNAME. */
function hidesBelow(types: ReadonlySet<number>): boolean {
  return types.has(RRType.DNAME) || (types.has(RRType.NS) && !types.has(RRType.SOA))
}

/** RFC 9824 section 3.1. */
function provesNoName({ owner, next, types }: Nsec): boolean {
  const after = Buffer.concat([Buffer.from([1, 0]), owner])
  return (
    types.has(RRType.NXNAME) && types.size === 3 && (equalNames(next, after) || owner.length > 253)
  )
}

/** `isApex`: the name is that of the zone. */
function faultOfTypes(types: ReadonlySet<number>, type: number, isApex: boolean): string {
  if (types.has(type)) return `the proof has the type ${printType(type)}`
  if (types.has(RRType.CNAME)) return 'the proof has the type CNAME'
  // The zone below the cut answers for other types (RFC 6840 section 4.1).
  if (type !== RRType.DS && hidesBelow(types) && !types.has(RRType.DNAME)) {
    return 'the proof is that of a delegation'
  }
  if (type === RRType.DS && types.has(RRType.SOA) && !isApex)
    return 'the proof is of the zone below'
  return ''
}

function faultOfDelegation(types: ReadonlySet<number>): string {
  if (!types.has(RRType.NS)) return 'the proof of a delegation lacks the type NS'
  if (types.has(RRType.DS)) return 'the proof of an insecure delegation has the type DS'
  return types.has(RRType.SOA) ? 'the proof is of the zone below' : ''
}

/** Returns the closest encloser of a name that an NSEC record covers. */
function encloserOf(name: Uint8Array, { owner, next }: Nsec): Uint8Array {
  let encloser = parentName(name)
  while (!isSubdomain(owner, encloser) && !isSubdomain(next, encloser)) {
    encloser = parentName(encloser)
  }
  return encloser
}

/** Returns the name that is one label longer than the encloser. */
function nextCloser(name: Uint8Array, encloser: Uint8Array): Uint8Array {
  const offsets = labelOffsets(name)
  return name.subarray(offsets[offsets.length - labelOffsets(encloser).length - 1])
}

function wildcardOf(encloser: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from('\x01*', 'latin1'), encloser])
}

function readNsec({ owner, rdata }: ProofRecord): Nsec {
  let end = 0
  while (rdata[end]! > 0) end += rdata[end]! + 1
  return { owner, next: rdata.slice(0, end + 1), types: readTypes(rdata.subarray(end + 1)) }
}

function readNsec3({ owner, rdata }: ProofRecord): Nsec3 {
  const octets = Buffer.from(rdata)
  if (octets[0] !== 1) throw new Error(`NSEC3 with hash algorithm ${octets[0]}`)
  const hashAt = 5 + octets[4]!
  const end = hashAt + 1 + octets[hashAt]!
  return {
    owner: decodeBase32Hex(owner.subarray(1, 1 + owner[0]!)),
    next: octets.subarray(hashAt + 1, end),
    isOptOut: (octets[1]! & 1) === 1,
    iterations: octets.readUInt16BE(2),
    salt: octets.subarray(5, hashAt),
    types: readTypes(octets.subarray(end)),
  }
}

/** RFC 4034 section 4.1.2. */
function readTypes(bitmap: Uint8Array): Set<number> {
  const types = new Set<number>()
  for (let at = 0; at < bitmap.length; at += 2 + bitmap[at + 1]!) {
    for (let bit = 0; bit < bitmap[at + 1]! * 8; bit++) {
      const isSet = (bitmap[at + 2 + (bit >> 3)]! & (0x80 >> (bit & 7))) !== 0
      if (isSet) types.add(bitmap[at]! * 256 + bit)
    }
  }
  return types
}

/** RFC 4648 section 7. */
function decodeBase32Hex(label: Uint8Array): Buffer {
  const text = Buffer.from(label).toString('latin1')
  const bits = [...text].map((digit) => Number.parseInt(digit, 32).toString(2).padStart(5, '0'))
  const octets = bits.join('').match(/.{8}/g) ?? []
  return Buffer.from(octets.map((octet) => Number.parseInt(octet, 2)))
}
