import { type Coordinates, type Point, squaredChord, type UnitVector, vector } from '../point.ts'

/** Points that compete for clients: those of the endpoints that one tier can have, in service or not. */
export type PointSet = readonly Point[]

/** The order of the points in use, by distance from the clients of each class. Plain data. */
export interface PointOrderData {
  /** Texts of the points that `orders` refers to. */
  readonly points: readonly string[]
  /** Rows of `points.length` indexes into `points`, nearest first. */
  readonly orders: Uint8Array
  /** By class: number of its row; NO_ORDER = the coordinates of its clients are unknown. */
  readonly orderOf: Int32Array
  /** True if some sets are ignored, because there are more than POINTS_MAX points. */
  readonly isCut: boolean
}

export const NO_ORDER = -1

/** Maximum of distinct points: their numbers have 8 bits. Sets with further points are ignored. */
export const POINTS_MAX = 256
/** Sets of up to this size are ordered completely. */
export const WHOLE_SET_MAX = 6
/** How many points of a larger set have their exact places in the order. */
const EXACT_COUNT = 3
/** Which half of a 64-bit number in memory has the low bits. */
const LOW = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1 ? 0 : 1

/**
 * Numbers the orders of distance that clients can see. Two clients have the same order if the first
 * points of each set are the same for both. The rest is ordered as for one of these clients, so that a
 * point is left as long as the set has one.
 */
export class PointOrders {
  readonly #points: readonly Point[]
  readonly #vectors: readonly UnitVector[]
  /** Numbers of the points of each set. */
  readonly #sets: readonly { readonly members: Uint8Array; readonly exactCount: number }[]
  /** Distance of each point from the client at hand. */
  readonly #distances: TaggedDistances
  /** All distances, or those of the first points of a set, in ascending order. */
  readonly #sorted: TaggedDistances
  /** The first points of each set. */
  readonly #key: Buffer
  readonly #isCut: boolean
  #rows = new Uint8Array(0)
  #rowCount = 0
  readonly #numberByKey = new Map<string, number>()
  /** Databases repeat coordinates. */
  readonly #numberByCoordinates = new Map<string, number>()

  constructor(sets: readonly PointSet[]) {
    const points = new Map<string, Point>()
    const used = sets.filter((set) => {
      const added = set.filter(({ text }) => !points.has(text))
      if (points.size + added.length > POINTS_MAX) return false
      for (const point of added) points.set(point.text, point)
      return true
    })
    this.#isCut = used.length < sets.length
    // The order of the sets must not decide between points at equal distances.
    this.#points = [...points.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
    this.#vectors = this.#points.map(vector)
    const texts = this.#points.map(({ text }) => text)
    this.#sets = used.map((set) => {
      const members = Uint8Array.from(set, ({ text }) => texts.indexOf(text))
      return { members, exactCount: set.length <= WHOLE_SET_MAX ? set.length - 1 : EXACT_COUNT }
    })
    this.#distances = new TaggedDistances(texts.length)
    this.#sorted = new TaggedDistances(texts.length)
    this.#key = Buffer.alloc(this.#sets.reduce((sum, { exactCount }) => sum + exactCount, 0))
  }

  orderAt(client: Coordinates): number {
    const place = `${client.latitude},${client.longitude}`
    const known = this.#numberByCoordinates.get(place)
    if (known !== undefined) return known
    const from = vector(client)
    for (const [point, at] of this.#vectors.entries()) {
      this.#distances.set(point, squaredChord(from, at), point)
    }
    const key = this.#composeKey()
    const number = this.#numberByKey.get(key) ?? this.#addRow()
    this.#numberByKey.set(key, number)
    this.#numberByCoordinates.set(place, number)
    return number
  }

  /** Returns the orders as plain data. `orderOf`: by class. */
  compose(orderOf: readonly number[]): PointOrderData {
    const points = this.#points.map(({ text }) => text)
    const orders = this.#rows.slice(0, this.#rowCount * points.length)
    return { points, orders, orderOf: Int32Array.from(orderOf), isCut: this.#isCut }
  }

  /** Adds the order of all points for the client at hand, and returns its number. */
  #addRow(): number {
    const { length } = this.#points
    const start = this.#rowCount * length
    if (start + length > this.#rows.length) {
      const larger = new Uint8Array(Math.max(start * 2, length))
      larger.set(this.#rows)
      this.#rows = larger
    }
    const sorted = this.#sorted
    sorted.values.set(this.#distances.values)
    sorted.values.sort()
    for (let i = 0; i < length; i++) this.#rows[start + i] = sorted.tagAt(i)
    return this.#rowCount++
  }

  /** Returns the numbers of the first points of each set, for the client at hand, as one character each. */
  #composeKey(): string {
    const key = this.#key
    let length = 0
    for (const { members, exactCount } of this.#sets) {
      this.#selectFirst(members, exactCount)
      for (let i = 0; i < exactCount; i++) key[length++] = this.#sorted.tagAt(i)
    }
    return key.toString('latin1')
  }

  /** Sets the first `count` values of `#sorted` to the smallest distances of `members`. */
  #selectFirst(members: Uint8Array, count: number): void {
    const distances = this.#distances.values
    const first = this.#sorted.values
    let filled = 0
    for (let i = 0; i < members.length; i++) {
      const distance = distances[members[i]!]!
      if (filled < count) filled++
      else if (count === 0 || distance > first[count - 1]!) continue
      let at = filled - 1
      for (; at > 0 && first[at - 1]! > distance; at--) first[at] = first[at - 1]!
      first[at] = distance
    }
  }
}

/**
 * Distances, each with a tag of 8 bits in the lowest bits of its fraction. So sorting numbers also sorts their tags,
 * and a lower tag comes first at equal distances. The distances lose less than a micrometre on the earth.
 */
class TaggedDistances {
  readonly values: Float64Array
  readonly #halves: Uint32Array

  constructor(length: number) {
    this.values = new Float64Array(length)
    this.#halves = new Uint32Array(this.values.buffer)
  }

  set(index: number, distance: number, tag: number): void {
    this.values[index] = distance
    const low = index * 2 + LOW
    this.#halves[low] = (this.#halves[low]! & ~0xff) | tag
  }

  tagAt(index: number): number {
    return this.#halves[index * 2 + LOW]! & 0xff
  }
}
