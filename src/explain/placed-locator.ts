import type { ClassTrie } from '../geo/class-trie.ts'
import type { PointSet } from '../geo/classes/point-orders.ts'
import { type GeoCode, scanGeoCode } from '../geo/code.ts'
import { CONTINENTS, COUNTRIES } from '../geo/countries.ts'
import type { Location } from '../geo/location.ts'
import type { Locator } from '../geo/locator.ts'

/** The codes of all countries and continents. */
const PLACE_CODES: readonly GeoCode[] = [
  ...COUNTRIES,
  ...[...CONTINENTS].map((continent) => `GEO-${continent}`),
].flatMap((text) => scanGeoCode(text) ?? [])

/**
 * A locator whose classes also distinguish all countries and continents. So the classes of a block say
 * where its clients are, and one trie has all distinctions.
 */
export class PlacedLocator implements Locator {
  readonly #locator: Locator
  readonly #placeCodes: readonly GeoCode[]

  /** `placeCodes`: to distinguish in place of all countries and continents. */
  constructor(locator: Locator, placeCodes = PLACE_CODES) {
    this.#locator = locator
    this.#placeCodes = placeCodes
  }

  locate(address: Uint8Array, family: number): Location {
    return this.#locator.locate(address, family)
  }

  field(address: Uint8Array, family: number, label: string): string {
    return this.#locator.field(address, family, label)
  }

  classify(codes: readonly GeoCode[], pointSets: readonly PointSet[] = []): Promise<ClassTrie> {
    const all = new Map([...this.#placeCodes, ...codes].map((code) => [code.text, code]))
    return this.#locator.classify([...all.values()], pointSets)
  }

  onChange(callback: () => void): () => void {
    return this.#locator.onChange(callback)
  }
}
