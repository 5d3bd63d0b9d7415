import { mixHash } from '../../dns/name/hash.ts'
import { lowerName, scanName } from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'

/** Larger files are rejected: they are not written by hand, and reading them would block the server. */
export const WEIGHT_FILE_OCTETS_MAX = 16 * 1024 * 1024
const WEIGHT_MAX = 255

/** One line of a weight file: the weight with which an address is the first of a name's answers. */
export interface Weight {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** 4 or 16 octets. */
  readonly address: Uint8Array
  /** 1..255. */
  readonly weight: number
}

/** Weights by name and address, as plain data in memory that threads can share. */
export interface WeightMemory {
  /**
   * Open addressing; a power of two of slots, and at least half of them are free: the offset of an
   * entry in `octets`, or -1.
   *
   *     entry: weight, octets of the address, address, name
   */
  readonly slots: Int32Array
  readonly octets: Uint8Array
}

const ENTRY_ADDRESS_OCTETS = 1
const ENTRY_ADDRESS = 2

/** Copies weights to shared memory. If a name and address have two weights, the first counts. */
export function copyWeights(weights: readonly Weight[]): WeightMemory {
  let size = 4
  while (size < weights.length * 2) size *= 2
  let total = 0
  for (const { name, address } of weights) total += ENTRY_ADDRESS + address.length + name.length
  const slots = new Int32Array(new SharedArrayBuffer(size * 4)).fill(-1)
  const octets = new Uint8Array(new SharedArrayBuffer(total))
  let end = 0
  for (const { name, address, weight } of weights) {
    const slot = findSlot({ slots, octets }, name, 0, address, 0, address.length)
    if (slots[slot] !== -1) continue
    slots[slot] = end
    octets.set([weight, address.length], end)
    octets.set(address, end + ENTRY_ADDRESS)
    octets.set(name, end + ENTRY_ADDRESS + address.length)
    end += ENTRY_ADDRESS + address.length + name.length
  }
  return { slots, octets }
}

/** The weight of an address of a name (wire form, any case), or 0 if there is none. @hot */
export function findWeight(
  weights: WeightMemory,
  name: Uint8Array,
  nameOffset: number,
  address: Uint8Array,
  addressOffset: number,
  octets: number,
): number {
  const slot = findSlot(weights, name, nameOffset, address, addressOffset, octets)
  const at = weights.slots[slot]!
  return at === -1 ? 0 : weights.octets[at]!
}

/** The slot of the entry, or the free slot for it. @hot */
function findSlot(
  weights: WeightMemory,
  name: Uint8Array,
  nameOffset: number,
  address: Uint8Array,
  addressOffset: number,
  octets: number,
): number {
  const { slots, octets: entries } = weights
  const mask = slots.length - 1
  let slot = hashOf(name, nameOffset, address, addressOffset, octets) & mask
  for (;;) {
    const at = slots[slot]!
    if (at === -1) return slot
    const isFound =
      entries[at + ENTRY_ADDRESS_OCTETS] === octets &&
      isSame(entries, at + ENTRY_ADDRESS, address, addressOffset, octets) &&
      isSameName(entries, at + ENTRY_ADDRESS + octets, name, nameOffset)
    if (isFound) return slot
    slot = (slot + 1) & mask
  }
}

function hashOf(
  name: Uint8Array,
  nameOffset: number,
  address: Uint8Array,
  addressOffset: number,
  octets: number,
): number {
  let hash = 0
  let at = nameOffset
  let labelEnd = nameOffset
  for (;;) {
    const octet = name[at]!
    if (at === labelEnd) {
      if (octet === 0) break
      labelEnd = at + octet + 1
    }
    hash = Math.imul(hash ^ lower(octet), 0x01000193)
    at++
  }
  for (let i = 0; i < octets; i++) {
    hash = Math.imul(hash ^ address[addressOffset + i]!, 0x01000193)
  }
  return mixHash(hash)
}

function isSame(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number, octets: number): boolean {
  for (let i = 0; i < octets; i++) if (a[aAt + i] !== b[bAt + i]) return false
  return true
}

/** `a` is already lower case. Length octets differ before either name ends. */
function isSameName(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): boolean {
  let labelEnd = 0
  for (let i = 0; ; i++) {
    const octet = a[aAt + i]!
    if (octet !== lower(b[bAt + i]!)) return false
    if (i !== labelEnd) continue
    if (octet === 0) return true
    labelEnd = i + octet + 1
  }
}

/** Length octets are at most 63, so they do not change. */
function lower(octet: number): number {
  return octet >= 0x41 && octet <= 0x5a ? octet | 0x20 : octet
}

/**
 * Reads a weight file: a name on its own line, followed by one `ADDRESS WEIGHT` per line. Ignores
 * empty lines and lines that begin with `#`. Returns the first fault as text.
 */
export function scanWeights(text: string, file: string): readonly Weight[] | string {
  const weights: Weight[] = []
  let name: Uint8Array | undefined
  for (const [i, line] of text.split('\n').entries()) {
    const fields = line.trim().split(/\s+/)
    if (fields[0] === '' || fields[0]!.startsWith('#')) continue
    const at = `in weight file ${file}, line ${i + 1}`
    if (fields.length === 1) {
      const isName = scanAddress(fields[0]!) === undefined
      const scanned = isName ? scanName(fields[0]!) : undefined
      if (scanned === undefined) {
        return `wrong domain name:"${fields[0]}" ${at}. (Maybe a missing weight value?)`
      }
      name = lowerName(scanned)
      continue
    }
    if (fields.length > 2) return `could not parse weight line:"${line.trim()}" ${at}`
    const address = scanAddress(fields[0]!)
    if (address === undefined) return `wrong IP address:"${fields[0]}" ${at}`
    const weight = /^\d{1,3}$/.test(fields[1]!) ? Number(fields[1]) : 0
    if (weight < 1 || weight > WEIGHT_MAX) return `wrong weight value:"${fields[1]}" ${at}`
    if (name === undefined) return `missing domain name ${at}`
    weights.push({ name, address: address.bytes, weight })
  }
  return weights
}
