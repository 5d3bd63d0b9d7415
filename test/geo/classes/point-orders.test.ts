import fc from 'fast-check'
import t from 'tap'
import { Random } from '../../../src/base/random.ts'
import { POINTS_MAX, PointOrders, type PointSet } from '../../../src/geo/classes/point-orders.ts'
import {
  type Coordinates,
  type Point,
  scanPoint,
  squaredChord,
  vector,
} from '../../../src/geo/point.ts'

const RUNS = { seed: 20261125, numRuns: 40 }

/** Exact up to this size; of larger sets the first three. */
const WHOLE_SET_MAX = 6

function randomPoint(random: Random): Point {
  const [latitude, longitude] = [random.below(18001) - 9000, random.below(36001) - 18000]
  return scanPoint(`${latitude / 100},${longitude / 100}`)!
}

function setOf(points: readonly Point[]): PointSet {
  const byText = new Map(points.map((point) => [point.text, point]))
  return [...byText.values()].sort((a, b) => (a.text < b.text ? -1 : 1))
}

/** Texts of the points by distance; the smaller text first at equal distances. */
function sortByDistance(points: readonly Point[], client: Coordinates): string[] {
  const from = vector(client)
  const distance = (point: Point): number => squaredChord(from, vector(point))
  return setOf(points)
    .toSorted((a, b) => distance(a) - distance(b))
    .map(({ text }) => text)
}

/** The first points of each set, as a client sees them. */
function firstOf(sets: readonly PointSet[], client: Coordinates): string {
  return sets
    .map((set) => sortByDistance(set, client).slice(0, set.length <= WHOLE_SET_MAX ? 6 : 3))
    .join(' | ')
}

t.test('clients have one order exactly if the first points of each set are the same', async (t) => {
  const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 })
  const property = fc.property(
    fc.nat(),
    fc.constantFrom(12, 40, POINTS_MAX),
    sizes,
    (seed, n, s) => {
      const random = new Random(seed)
      const points = Array.from({ length: n }, () => randomPoint(random))
      // The last set makes all points count.
      const some = s.map((size) =>
        setOf(Array.from({ length: size }, () => points[random.below(n)]!)),
      )
      const sets = n === 12 ? some : [...some, setOf(points)]
      const orders = new PointOrders(sets)
      const clients = Array.from({ length: 60 }, () => randomPoint(random))
      const numbers = clients.map((client) => orders.orderAt(client))
      const { points: texts, orders: rows, isCut } = orders.compose([])
      if (isCut) throw new Error('a set is ignored')
      const numberOf = new Map<string, number>()
      for (const [i, client] of clients.entries()) {
        const first = firstOf(sets, client)
        const known = numberOf.get(first)
        if (known === undefined) {
          // The client that made the row.
          const row = rows.subarray(numbers[i]! * texts.length, (numbers[i]! + 1) * texts.length)
          const used = setOf(sets.flat())
          const wanted = sortByDistance(used, client).join()
          const found = Array.from(row, (point) => texts[point]).join()
          if (found !== wanted) throw new Error(`${client.text}: ${found} instead of ${wanted}`)
          if ([...numberOf.values()].includes(numbers[i]!))
            throw new Error(`${client.text}: shared`)
        } else if (known !== numbers[i])
          throw new Error(`${client.text}: ${known} and ${numbers[i]}`)
        numberOf.set(first, numbers[i]!)
      }
    },
  )
  fc.assert(property, RUNS)
  t.pass()
})

t.test('points at equal distances are in the order of their texts', async (t) => {
  const points = ['0.00,10.00', '0.00,-10.00', '10.00,0.00', '-10.00,0.00'].map(
    (text) => scanPoint(text)!,
  )
  const orders = new PointOrders([setOf(points)])
  t.equal(orders.orderAt({ latitude: 0, longitude: 0 }), 0)
  const { points: texts, orders: row } = orders.compose([0])
  t.strictSame(texts, texts.toSorted())
  t.strictSame([...row], [0, 1, 2, 3])
})

t.test('sets with points above the maximum are ignored', async (t) => {
  const random = new Random(1)
  const points = new Map<string, Point>()
  while (points.size <= POINTS_MAX) {
    const point = randomPoint(random)
    points.set(point.text, point)
  }
  const all = [...points.values()]
  const orders = new PointOrders([setOf(all), setOf(all.slice(0, 2))])
  orders.orderAt({ latitude: 1, longitude: 2 })
  const data = orders.compose([0])
  t.equal(data.isCut, true)
  t.equal(data.points.length, 2)
  t.equal(data.orders.length, 2)
})
