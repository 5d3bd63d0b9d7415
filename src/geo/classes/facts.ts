import type { GeoCode } from '../code.ts'
import { type Location, ladderOf } from '../location.ts'
import { type Aspect, aspectOf, type Net, placeOf } from '../net.ts'

/**
 * The facts about a prefix, reduced to the codes in use. Each aspect has the texts of the codes
 * that match, in the order of the ladder. [] = known, but no code in use matches; undefined =
 * unknown, so that a later source can supply it.
 */
export type Facts = Readonly<Record<Aspect, readonly string[] | undefined>>

const UNKNOWN: Facts = { net: undefined, asn: undefined, place: undefined }

/** Number of the facts in which every aspect is unknown. */
export const UNKNOWN_FACTS = 0

/** Numbers the facts in use, each once. The tries under construction have these numbers as leaves. */
export class FactsPool {
  readonly #codes: ReadonlyMap<string, GeoCode>
  readonly #facts: Facts[] = []
  readonly #numberByKey = new Map<string, number>()

  constructor(codes: readonly GeoCode[]) {
    const located = codes.filter((code) => code.rung !== 'default')
    this.#codes = new Map(located.map((code) => [code.text, code]))
    this.#intern(UNKNOWN)
  }

  /** Returns the number of the facts in an entry of a database. */
  ofLocation(location: Location): number {
    const placed = location.country !== '' || location.continent !== ''
    return this.#intern({
      net: undefined,
      asn: location.asn === 0 ? undefined : this.#inUse([`AS${location.asn}`]),
      place: placed ? this.#inUse(ladderOf({ ...location, asn: 0, net: '' })) : undefined,
    })
  }

  /** Returns the number of the facts that a net sets. */
  ofNet(net: Net): number {
    const aspect = aspectOf(net.code)
    const texts =
      aspect === 'place' ? ladderOf({ net: '', asn: 0, ...placeOf(net.code) }) : [net.code.text]
    return this.#intern({ ...UNKNOWN, [aspect]: this.#inUse(texts) })
  }

  /** Combines two facts: `over` in the aspects that it knows, else `under`. */
  overlay(over: number, under: number): number {
    if (over === UNKNOWN_FACTS || over === under) return under
    if (under === UNKNOWN_FACTS) return over
    const [a, b] = [this.#facts[over]!, this.#facts[under]!]
    return this.#intern({ net: a.net ?? b.net, asn: a.asn ?? b.asn, place: a.place ?? b.place })
  }

  /** Returns the codes that match, in the order of the ladder. */
  codesOf(number: number): GeoCode[] {
    const { net = [], asn = [], place = [] } = this.#facts[number]!
    return [...net, ...asn, ...place].map((text) => this.#codes.get(text)!)
  }

  #inUse(texts: readonly string[]): string[] {
    return texts.filter((text) => this.#codes.has(text))
  }

  #intern(facts: Facts): number {
    const key = [facts.net, facts.asn, facts.place].map((codes) => codes?.join() ?? '?').join('|')
    const known = this.#numberByKey.get(key)
    if (known !== undefined) return known
    this.#numberByKey.set(key, this.#facts.length)
    return this.#facts.push(facts) - 1
  }
}
