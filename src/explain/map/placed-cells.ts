import { assert } from '../../base/assert.ts'
import type { ClassTrie, ClassTrieData } from '../../geo/class-trie.ts'
import { type ClassCell, SPACES } from '../../geo/classes/class-cells.ts'
import type { PointSet } from '../../geo/classes/point-orders.ts'
import type { GeoCode } from '../../geo/code.ts'
import { COUNTRIES } from '../../geo/countries.ts'
import type { Locator } from '../../geo/locator.ts'
import { runJobInThread } from '../../geo/worker/run-job.ts'
import { PlacedLocator } from '../placed-locator.ts'

/** Clients of one GEO class at one place. */
export interface PlacedCell {
  readonly clientClass: number
  /** As `MapPlace.code`. */
  readonly place: string
  /** Parts of the addresses of each family, 0..1. */
  readonly ipv4: number
  readonly ipv6: number
}

/** A trie, and where the clients of its classes are. */
interface PlacedTrie {
  readonly trie: ClassTrie
  readonly cells: readonly PlacedCell[]
}

const UNKNOWN_PLACE = 'unknown'
const PRIVATE_PLACE = 'private'

/** All clients, if the databases do not matter. */
export const ALL_PLACES: readonly PlacedCell[] = [...COUNTRIES, UNKNOWN_PLACE, PRIVATE_PLACE].map(
  (place) => ({ clientClass: 0, place, ipv4: 1, ipv6: 1 }),
)

const IS_COUNTRY: ReadonlySet<string> = new Set(COUNTRIES)

/** True for a code of ISO 3166-1, and `XK`. */
export function isCountry(place: string): boolean {
  return IS_COUNTRY.has(place)
}

const PLACE_CODES: readonly GeoCode[] = COUNTRIES.map((text) => ({ rung: 'country', text }))

/** Tries of previews in memory. */
const PREVIEW_TRIES_MAX = 2

/** Finds out where the clients of GEO classes are. Works in threads of its own, and caches the results. */
export class PlacedCells {
  /** By locator: a trie that distinguishes countries, for its databases as they are. */
  readonly #places = new Map<Locator, Promise<ClassTrie>>()
  readonly #served = new WeakMap<ClassTrieData, Promise<readonly PlacedCell[]>>()
  /** By locator, codes and points, the last used one last. */
  readonly #previews = new Map<string, Promise<PlacedTrie>>()
  readonly #numbers = new Map<Locator, number>()
  readonly #stops = new Map<Locator, () => void>()

  /** `trie`: in use, of the classes of `locator`. */
  async ofServed(locator: Locator, trie: ClassTrie): Promise<PlacedTrie> {
    const { data } = trie
    const cells = this.#served.get(data) ?? this.#measureServed(locator, data)
    this.#served.set(data, cells)
    return { trie, cells: await retained(cells, () => this.#served.delete(data)) }
  }

  /** Resolves to a trie that distinguishes codes and points, and its cells. */
  ofCodes(
    locator: Locator,
    codes: readonly GeoCode[],
    pointSets: readonly PointSet[],
  ): Promise<PlacedTrie> {
    this.#follow(locator)
    const points = pointSets.map((set) => set.map(({ text }) => text).join(' '))
    const number = this.#numbers.get(locator) ?? this.#numbers.size
    this.#numbers.set(locator, number)
    const key = [number, ...codes.map(({ text }) => text).sort(), '', ...points.sort()].join('\n')
    const known = this.#previews.get(key) ?? this.#classify(locator, codes, pointSets)
    this.#previews.delete(key)
    this.#previews.set(key, known)
    for (const first of this.#previews.keys()) {
      if (this.#previews.size > PREVIEW_TRIES_MAX) this.#previews.delete(first)
    }
    return retained(known, () => this.#previews.delete(key))
  }

  close(): void {
    for (const stop of this.#stops.values()) stop()
    this.#stops.clear()
  }

  async #measureServed(locator: Locator, data: ClassTrieData): Promise<readonly PlacedCell[]> {
    this.#follow(locator)
    const known = this.#places.get(locator) ?? placed(locator).classify([])
    this.#places.set(locator, known)
    const places = await retained(known, () => this.#places.delete(locator))
    const cells = await measure([data, places.data])
    return placeCells(cells, places.codesOf)
  }

  async #classify(
    locator: Locator,
    codes: readonly GeoCode[],
    pointSets: readonly PointSet[],
  ): Promise<PlacedTrie> {
    const trie = await placed(locator).classify(codes, pointSets)
    const cells = await measure([trie.data])
    return { trie, cells: placeCells(cells, trie.codesOf) }
  }

  #follow(locator: Locator): void {
    if (this.#stops.has(locator)) return
    const stop = locator.onChange(() => {
      this.#places.delete(locator)
      this.#previews.clear()
    })
    this.#stops.set(locator, stop)
  }
}

/** Forgets a result that failed, so that the next request tries again. */
async function retained<T>(result: Promise<T>, forget: () => void): Promise<T> {
  try {
    return await result
  } catch (error) {
    forget()
    throw error
  }
}

function placed(locator: Locator): PlacedLocator {
  return new PlacedLocator(locator, PLACE_CODES)
}

async function measure(tries: readonly ClassTrieData[]): Promise<readonly ClassCell[]> {
  // Measuring reads no codes, and a City database has many.
  const plain = tries.map((trie) => ({
    ...trie,
    near: undefined,
    codesOf: trie.codesOf.map(() => []),
  }))
  const { cells } = await runJobInThread({ kind: 'measure', tries: plain })
  assert(cells !== undefined, 'the job measures cells')
  return cells
}

/** `codesOf`: of the last trie of the cells. */
function placeCells(
  cells: readonly ClassCell[],
  codesOf: readonly (readonly GeoCode[])[],
): PlacedCell[] {
  const placed: PlacedCell[] = []
  for (const { classes, parts } of cells) {
    const clientClass = classes[0]!
    const country = codesOf[classes.at(-1)!]!.find(({ rung }) => rung === 'country')
    const [ipv4, ipv6, private4, private6] = SPACES.map((space) => parts[space])
    const place = country?.text ?? UNKNOWN_PLACE
    if (ipv4! + ipv6! > 0) placed.push({ clientClass, place, ipv4: ipv4!, ipv6: ipv6! })
    if (private4! + private6! === 0) continue
    placed.push({ clientClass, place: PRIVATE_PLACE, ipv4: private4!, ipv6: private6! })
  }
  return placed
}
