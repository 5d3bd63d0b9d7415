import { type ClassCell, SPACES, type Space } from '../geo/classes/class-cells.ts'
import type { GeoCode } from '../geo/code.ts'

/** Parts of address spaces, 0..1. */
export type Shares = Readonly<Record<Space, number>>

/** Parts of the addresses of one country or continent. */
export interface PlaceShare {
  /** Geo code: `DE` or `GEO-EU`; '' = addresses without a location. */
  readonly code: string
  readonly ipv4: number
  readonly ipv6: number
}

/** For which part of the address space something holds. */
export interface AddressShares extends Shares {
  /** Places with a share above 0, largest first. */
  readonly countries: readonly PlaceShare[]
  readonly continents: readonly PlaceShare[]
}

/** True for cells that a statement holds for; parallel to the cells. */
export type CellSet = Readonly<Uint8Array>

/** Sums up parts of address spaces over cells. */
export class CellShares {
  readonly #cells: readonly ClassCell[]
  /** By cell: geo codes of its country and continent. */
  readonly #countries: readonly string[]
  readonly #continents: readonly string[]
  readonly #ofCountries: ReadonlyMap<string, Shares>
  readonly #ofContinents: ReadonlyMap<string, Shares>
  readonly #known = new Map<CellSet, AddressShares>()

  /** `placesOf`: the codes of each class of the last trie of the cells. */
  constructor(cells: readonly ClassCell[], placesOf: readonly (readonly GeoCode[])[]) {
    this.#cells = cells
    const codeOf = ({ classes }: ClassCell, rung: GeoCode['rung']): string => {
      return placesOf[classes.at(-1)!]!.find((code) => code.rung === rung)?.text ?? ''
    }
    this.#countries = cells.map((cell) => codeOf(cell, 'country'))
    this.#continents = cells.map((cell) => codeOf(cell, 'continent'))
    const every = new Uint8Array(cells.length).fill(1)
    this.#ofCountries = this.#sumBy(this.#countries, every)
    this.#ofContinents = this.#sumBy(this.#continents, every)
  }

  /** Returns the shares of a set of cells. Computed once for each object. */
  of(set: CellSet): AddressShares {
    const known = this.#known.get(set)
    if (known !== undefined) return known
    const total = { ...NOTHING }
    for (const [i, { parts }] of this.#cells.entries()) {
      if (set[i] === 1) for (const space of SPACES) total[space] += parts[space]
    }
    const shares = {
      ...rounded(total),
      countries: placeShares(this.#sumBy(this.#countries, set), this.#ofCountries),
      continents: placeShares(this.#sumBy(this.#continents, set), this.#ofContinents),
    }
    this.#known.set(set, shares)
    return shares
  }

  #sumBy(codes: readonly string[], set: CellSet): Map<string, Record<Space, number>> {
    const sums = new Map<string, Record<Space, number>>()
    for (const [i, { parts }] of this.#cells.entries()) {
      if (set[i] !== 1) continue
      const code = codes[i]!
      const sum = sums.get(code) ?? { ...NOTHING }
      sums.set(code, sum)
      for (const space of SPACES) sum[space] += parts[space]
    }
    return sums
  }
}

const NOTHING: Shares = { ipv4: 0, ipv6: 0, private4: 0, private6: 0 }

function placeShares(
  parts: ReadonlyMap<string, Shares>,
  totals: ReadonlyMap<string, Shares>,
): PlaceShare[] {
  return [...parts]
    .map(([code, { ipv4, ipv6 }]) => {
      const total = totals.get(code)!
      return { code, ipv4: ratio(ipv4, total.ipv4), ipv6: ratio(ipv6, total.ipv6) }
    })
    .filter(({ ipv4, ipv6 }) => ipv4 > 0 || ipv6 > 0)
    .sort(
      (a, b) => Math.max(b.ipv4, b.ipv6) - Math.max(a.ipv4, a.ipv6) || (a.code < b.code ? -1 : 1),
    )
}

function ratio(part: number, total: number): number {
  return total === 0 ? 0 : clean(part / total)
}

function rounded(shares: Shares): Shares {
  const { ipv4, ipv6, private4, private6 } = shares
  return {
    ipv4: clean(ipv4),
    ipv6: clean(ipv6),
    private4: clean(private4),
    private6: clean(private6),
  }
}

/** Removes the rounding error of a sum of parts. */
function clean(share: number): number {
  return Math.min(1, Math.round(share * 1e12) / 1e12)
}
