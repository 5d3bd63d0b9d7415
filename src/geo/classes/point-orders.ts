import { type Coordinates, type Point, squaredChord, type UnitVector, vector } from '../point.ts'

/** Points that compete for clients: those of the endpoints that one tier can have, in service or not. */
export type PointSet = readonly Point[]

/** The order of the points in use, by distance from the clients of each class. Plain data. */
export interface PointOrderData {
  /** Texts of the points that `orders` refers to. */
  readonly points: readonly string[]
  /** Rows of `points.length` indexes into `points`, nearest first. */
  readonly orders: Uint16Array
  /** By class: number of its row; NO_ORDER = the coordinates of its clients are unknown. */
  readonly orderOf: Int32Array
  /** True if some sets are ignored, because there are more than POINTS_MAX points. */
  readonly isCut: boolean
}

export const NO_ORDER = -1

/** Maximum of distinct points. Sets with further points are ignored. */
export const POINTS_MAX = 256
/** Sets of up to this size are ordered completely. */
const WHOLE_SET_MAX = 6
/** How many points of a larger set have their exact places in the order. */
const EXACT_COUNT = 3

/**
 * Numbers the orders of distance that clients can see. Two clients have the same order if the first
 * points of each set are the same for both. The rest is ordered as for one of these clients, so that a
 * point is left as long as the set has one.
 */
export class PointOrders {
  readonly #points: readonly Point[]
  readonly #vectors: readonly UnitVector[]
  /** Numbers of the points of each set. */
  readonly #sets: readonly { readonly members: Uint16Array; readonly exactCount: number }[]
  /** Place of each point in the order at hand. */
  readonly #rank: Uint16Array
  readonly #isCut: boolean
  readonly #rows: Uint16Array[] = []
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
    this.#rank = new Uint16Array(texts.length)
    this.#sets = used.map((set) => {
      const members = Uint16Array.from(set, ({ text }) => texts.indexOf(text))
      return { members, exactCount: set.length <= WHOLE_SET_MAX ? set.length - 1 : EXACT_COUNT }
    })
  }

  /** Returns the number of the order for a client. */
  orderAt(client: Coordinates): number {
    const place = `${client.latitude},${client.longitude}`
    const known = this.#numberByCoordinates.get(place)
    if (known !== undefined) return known
    const row = this.#sort(vector(client))
    const key = this.#keyOf(row)
    const number = this.#numberByKey.get(key) ?? this.#rows.push(row) - 1
    this.#numberByKey.set(key, number)
    this.#numberByCoordinates.set(place, number)
    return number
  }

  /** Returns the orders as plain data. `orderOf`: by class. */
  compose(orderOf: readonly number[]): PointOrderData {
    const points = this.#points.map(({ text }) => text)
    const orders = new Uint16Array(this.#rows.length * points.length)
    for (const [i, row] of this.#rows.entries()) orders.set(row, i * points.length)
    return { points, orders, orderOf: Int32Array.from(orderOf), isCut: this.#isCut }
  }

  #sort(client: UnitVector): Uint16Array {
    const distances = this.#vectors.map((point) => squaredChord(client, point))
    return Uint16Array.from(distances.keys()).sort((a, b) => distances[a]! - distances[b]! || a - b)
  }

  #keyOf(row: Uint16Array): string {
    const rank = this.#rank
    for (const [place, point] of row.entries()) rank[point] = place
    let key = ''
    for (const { members, exactCount } of this.#sets) {
      const ordered = members.map((point) => rank[point]!).sort()
      for (let i = 0; i < exactCount; i++) key += String.fromCharCode(row[ordered[i]!]!)
    }
    return key
  }
}
