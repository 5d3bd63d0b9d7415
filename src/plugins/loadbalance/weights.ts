import { mixHash } from '../../dns/name/hash.ts'
import { lowerName, scanName } from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'

/** Larger files are refused: nobody writes them by hand, and they would stall the server. */
export const WEIGHT_FILE_OCTETS_MAX = 16 * 1024 * 1024
const WEIGHT_MAX = 255

/** One line of a weight file: what share of a name's answers one address leads. */
export interface Weight {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** 4 or 16 octets. */
  readonly address: Uint8Array
  /** 1..255. */
  readonly weight: number
}

/** Weights by name and address, found without allocating. */
export class WeightTable {
  readonly #weights: readonly Weight[]
  /** Open addressing: index into `#weights`, or -1. At least half of it is free. */
  readonly #slots: Int32Array
  readonly #mask: number

  /** Of two weights for one name and address, the first counts. */
  constructor(weights: readonly Weight[]) {
    let size = 4
    while (size < weights.length * 2) size *= 2
    this.#weights = weights
    this.#mask = size - 1
    this.#slots = new Int32Array(size).fill(-1)
    for (const [index, { name, address }] of weights.entries()) {
      if (this.find(name, 0, address, 0, address.length) !== 0) continue
      let slot = this.#slotOf(name, 0, address, 0, address.length)
      while (this.#slots[slot] !== -1) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index
    }
  }

  /** The weight of an address of a name (wire form, any case), or 0 if the file has none. */
  find(
    name: Uint8Array,
    nameOffset: number,
    address: Uint8Array,
    addressOffset: number,
    octets: number,
  ): number {
    let slot = this.#slotOf(name, nameOffset, address, addressOffset, octets)
    for (;;) {
      const index = this.#slots[slot]!
      if (index === -1) return 0
      const weight = this.#weights[index]!
      if (
        weight.address.length === octets &&
        equalOctets(weight.address, address, addressOffset) &&
        equalLowered(weight.name, name, nameOffset)
      ) {
        return weight.weight
      }
      slot = (slot + 1) & this.#mask
    }
  }

  #slotOf(
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
    return mixHash(hash) & this.#mask
  }
}

function equalOctets(a: Uint8Array, b: Uint8Array, bOffset: number): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== b[bOffset + i]) return false
  return true
}

/** `a` is lower case already, and its length octets end the comparison before `b` can run out. */
function equalLowered(a: Uint8Array, b: Uint8Array, bOffset: number): boolean {
  for (let i = 0; i < a.length; i++) if (a[i] !== lower(b[bOffset + i]!)) return false
  return true
}

/** Length octets are at most 63, and so stay as they are. */
function lower(octet: number): number {
  return octet >= 0x41 && octet <= 0x5a ? octet | 0x20 : octet
}

/**
 * Reads a weight file: a name on a line of its own, below it one `ADDRESS WEIGHT` per line; empty lines
 * and lines that begin with `#` mean nothing. Returns the first fault as text.
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
