import { type Cidr, maskAddress, printAddress } from '../dns/text/address.ts'

interface Net {
  readonly cidr: Cidr
  readonly place: string
  /** By map. */
  readonly values: Map<string, string>
}

/** A line `net` of the directive geoip. */
interface NetLine {
  readonly cidr: string
  readonly code: string
  readonly place: string
}

/** Longest label of a custom net, without the number that makes it unique. */
const LABEL_CHARACTERS_MAX = 56

/**
 * Networks that several maps give a value each: the longest match counts in each map. A client has one custom net in
 * Sextant, so that all networks with the same values in all maps share one code `NET-…`.
 */
export class NetClasses {
  readonly #nets = new Map<string, Net>()
  /** The code of each network, by key; undefined = not computed. */
  #codes: Map<string, string> | undefined

  /** Defines the value of a network in a map; the first one counts. */
  define(map: string, cidr: Cidr, value: string, place: string): void {
    this.#codes = undefined
    const key = keyOf(cidr.bytes, cidr)
    const net = this.#nets.get(key) ?? { cidr, place, values: new Map() }
    this.#nets.set(key, net)
    if (!net.values.has(map)) net.values.set(map, value)
  }

  /** Returns the codes of all networks with this value in the map. */
  codesOf(map: string, value: string): readonly string[] {
    const codes = this.#compute()
    const found = [...this.#nets].filter(([, { cidr }]) => this.#valueOf(map, cidr) === value)
    return [...new Set(found.map(([key]) => codes.get(key)!))]
  }

  lines(): readonly NetLine[] {
    const codes = this.#compute()
    return [...this.#nets].map(([key, { cidr, place }]) => {
      const address = printAddress(maskAddress(cidr.bytes, cidr.bits), cidr.family)
      return { cidr: `${address}/${cidr.bits}`, code: codes.get(key)!, place }
    })
  }

  #compute(): Map<string, string> {
    if (this.#codes !== undefined) return this.#codes
    const maps = [...new Set([...this.#nets.values()].flatMap(({ values }) => [...values.keys()]))]
    const bySignature = new Map<string, string>()
    const taken = new Set<string>()
    this.#codes = new Map()
    for (const [key, { cidr }] of this.#nets) {
      const values = maps.map((map) => this.#valueOf(map, cidr) ?? '')
      const signature = JSON.stringify(values)
      const code = bySignature.get(signature) ?? nameCode(values, taken)
      bySignature.set(signature, code)
      taken.add(code)
      this.#codes.set(key, code)
    }
    return this.#codes
  }

  /** The value of the longest network of the map that contains `cidr`; undefined = none. */
  #valueOf(map: string, { bytes, family, bits }: Cidr): string | undefined {
    for (let shorter = bits; shorter >= 0; shorter--) {
      const value = this.#nets.get(keyOf(bytes, { family, bits: shorter }))?.values.get(map)
      if (value !== undefined) return value
    }
    return undefined
  }
}

function keyOf(bytes: Uint8Array, { family, bits }: Pick<Cidr, 'family' | 'bits'>): string {
  return `${family} ${bits} ${maskAddress(bytes, bits).join('.')}`
}

/** `values`: what the code stands for. */
function nameCode(values: readonly string[], taken: ReadonlySet<string>): string {
  const words = [...new Set(values.filter((value) => value !== ''))].join('-').toUpperCase()
  const label = words.replace(/[^0-9A-Z_]+/g, '-').replace(/^-+|-+$/g, '')
  const base = `NET-${label.slice(0, LABEL_CHARACTERS_MAX) || 'X'}`
  let code = base
  for (let i = 2; taken.has(code); i++) code = `${base}-${i}`
  return code
}
