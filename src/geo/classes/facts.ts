import type { GeoCode } from '../code.ts'
import { type Location, ladderOf } from '../location.ts'
import { type Aspect, aspectOf, type Net, placeOf } from '../net.ts'
import type { Coordinates } from '../point.ts'
import { NO_ORDER, type PointOrders } from './point-orders.ts'

/**
 * The facts about a prefix, reduced to the codes in use. Each aspect has the texts of the codes
 * that match, in the order of the ladder. [] = known, but no code in use matches; undefined =
 * unknown, so that a later source can supply it.
 */
export interface Facts extends Readonly<Record<Aspect, readonly string[] | undefined>> {
  /** Number of the order of points, or NO_ORDER. */
  readonly order: number | undefined
}

const UNKNOWN: Facts = { net: undefined, asn: undefined, place: undefined, order: undefined }

/** Number of the facts in which every aspect is unknown. */
export const UNKNOWN_FACTS = 0

/** Numbers the facts in use, each once. The tries under construction have these numbers as leaves. */
export class FactsPool {
  readonly #codes: ReadonlyMap<string, GeoCode>
  readonly #orders: PointOrders | undefined
  readonly #facts: Facts[] = []
  readonly #numberByKey = new Map<string, number>()

  /** `orders`: undefined = distances do not matter. */
  constructor(codes: readonly GeoCode[], orders: PointOrders | undefined) {
    this.#orders = orders
    const located = codes.filter((code) => code.rung !== 'default')
    this.#codes = new Map(located.map((code) => [code.text, code]))
    this.#intern(UNKNOWN)
  }

  /** The numbers are below this. */
  get size(): number {
    return this.#facts.length
  }

  /** Returns the number of the facts in an entry of a database. */
  ofLocation(location: Location): number {
    const placed = location.country !== '' || location.continent !== ''
    return this.#intern({
      net: undefined,
      asn: location.asn === 0 ? undefined : this.#inUse([`AS${location.asn}`]),
      place: placed ? this.#inUse(ladderOf({ ...location, asn: 0, net: '' })) : undefined,
      order: placed ? this.#orderAt(location.coordinates) : undefined,
    })
  }

  /** Returns the number of the facts that a net sets. */
  ofNet({ codes, point }: Net): number {
    let facts = UNKNOWN
    for (const code of codes) {
      const aspect = aspectOf(code)
      const isPlace = aspect === 'place'
      const texts = isPlace ? ladderOf({ net: '', asn: 0, ...placeOf(code) }) : [code.text]
      facts = { ...facts, [aspect]: this.#inUse(texts) }
      // The coordinates of a database are wrong where a net sets another place.
      if (isPlace) facts = { ...facts, order: this.#orderAt(undefined) }
    }
    return this.#intern(point === undefined ? facts : { ...facts, order: this.#orderAt(point) })
  }

  /** Combines two facts: `over` in the aspects that it knows, else `under`. */
  overlay(over: number, under: number): number {
    if (over === UNKNOWN_FACTS || over === under) return under
    if (under === UNKNOWN_FACTS) return over
    const [a, b] = [this.#facts[over]!, this.#facts[under]!]
    return this.#intern({
      net: a.net ?? b.net,
      asn: a.asn ?? b.asn,
      place: a.place ?? b.place,
      order: a.order ?? b.order,
    })
  }

  /** Returns the codes that match, in the order of the ladder. */
  codesOf(number: number): GeoCode[] {
    const { net = [], asn = [], place = [] } = this.#facts[number]!
    return [...net, ...asn, ...place].map((text) => this.#codes.get(text)!)
  }

  /** Returns the number of the order of points of clients with these facts, or NO_ORDER. */
  orderOf(number: number): number {
    return this.#facts[number]!.order ?? NO_ORDER
  }

  #orderAt(coordinates: Coordinates | undefined): number | undefined {
    if (this.#orders === undefined) return undefined
    return coordinates === undefined ? NO_ORDER : this.#orders.orderAt(coordinates)
  }

  #inUse(texts: readonly string[]): string[] {
    return texts.filter((text) => this.#codes.has(text))
  }

  #intern(facts: Facts): number {
    const { net, asn, place, order } = facts
    const codes = [net, asn, place].map((texts) => texts?.join() ?? '?').join('|')
    const key = `${codes}|${order}`
    const known = this.#numberByKey.get(key)
    if (known !== undefined) return known
    this.#numberByKey.set(key, this.#facts.length)
    return this.#facts.push(facts) - 1
  }
}
