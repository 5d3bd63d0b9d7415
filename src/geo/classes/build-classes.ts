import { type ClassTrieData, composeTop } from '../class-trie.ts'
import type { GeoCode } from '../code.ts'
import type { Location } from '../location.ts'
import type { Database } from '../mmdb/database.ts'
import { CodesReader, readLocation } from '../mmdb/schema.ts'
import type { Net } from '../net.ts'
import { FactsPool, UNKNOWN_FACTS } from './facts.ts'
import { NO_ORDER, PointOrders, type PointSet } from './point-orders.ts'
import { TreeReducer } from './reduce-tree.ts'
import { leafOf, type Subtree, TrieBuilder } from './trie-builder.ts'

/** ::ffff:0:0/96 (RFC 4291 section 2.5.5.2). */
const MAPPED_PREFIX = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff)
const MAPPED_BITS = 96
/** The trie of a source without data about any address. */
const NOTHING: Subtree = leafOf(UNKNOWN_FACTS)

interface ClassInput {
  /** In order of precedence: the first that has a fact about an address wins. */
  readonly databases: readonly Database[]
  readonly nets: readonly Net[]
  /** The codes in use, without duplicates. */
  readonly codes: readonly GeoCode[]
  /** Sets of points. Each client gets the nearest point of a set. Undefined = no set. */
  readonly pointSets?: readonly PointSet[] | undefined
}

/**
 * Reduces location data to the distinctions that `codes` and `pointSets` make.
 *
 *     database trees ─▶ tries of facts ─▶ one over the other ─▶ nets on top ─▶ classes ─▶ words
 *
 * A pure function that takes a few hundred milliseconds for a country database. Throws InputError
 * if a database is corrupt.
 */
export function buildClasses(input: ClassInput): ClassTrieData {
  const builder = new TrieBuilder()
  const { pointSets = [] } = input
  const orders = pointSets.length === 0 ? undefined : new PointOrders(pointSets)
  const pool = new FactsPool(input.codes, orders)
  let ipv4 = NOTHING
  let ipv6 = NOTHING
  for (const database of input.databases) {
    const reducer = new TreeReducer(
      database.tree,
      builder,
      factsOfEntries(database, pool, orders !== undefined),
    )
    const overlay = (over: Subtree, under: Subtree): Subtree =>
      over === NOTHING ? under : builder.combine(over, under, (a, b) => pool.overlay(a, b))
    const reduce = (family: 1 | 2): Subtree =>
      database.ignored
        .filter((prefix) => prefix.family === family)
        .reduce(
          (trie, { bytes, bits }) => builder.graft(trie, bytes, bits, () => NOTHING),
          reducer.reduce(family),
        )
    ipv4 = overlay(ipv4, reduce(1))
    ipv6 = overlay(ipv6, reduce(2))
  }
  for (const net of input.nets.toSorted((a, b) => a.cidr.bits - b.cidr.bits)) {
    if (net.cidr.family === 1) ipv4 = placeNet(builder, pool, ipv4, net)
    else ipv6 = placeNet(builder, pool, ipv6, net)
  }
  const { classOf, codesOf, orderOf } = numberClasses(pool)
  const [classes4, classes6] = builder.map([ipv4, ipv6], classOf) as [Subtree, Subtree]
  const whole6 = builder.graft(classes6, MAPPED_PREFIX, MAPPED_BITS, () => classes4)
  const { words, roots } = builder.compact([classes4, whole6])
  const [rootIPv4, rootIPv6] = roots as [number, number]
  const [topIPv4, topIPv6] = [composeTop(words, rootIPv4), composeTop(words, rootIPv6)]
  const near = orders?.compose(orderOf)
  return { words, rootIPv4, rootIPv6, topIPv4, topIPv6, codesOf, near }
}

/** Returns a function that reads each entry once, however many prefixes share it. */
function factsOfEntries(
  database: Database,
  pool: FactsPool,
  readsCoordinates: boolean,
): (entry: number) => number {
  const { data } = database
  data.boundReads()
  const known = new Map<number, number>([[-1, UNKNOWN_FACTS]])
  const codes = new CodesReader(data)
  // Most entries without coordinates have the location of another one.
  const factsOf = new Map<Location, number>()
  const read = (entry: number): number => {
    if (readsCoordinates) return pool.ofLocation(readLocation(data, entry))
    const location = codes.read(entry)
    const facts = factsOf.get(location) ?? pool.ofLocation(location)
    factsOf.set(location, facts)
    return facts
  }
  return (entry) => {
    let facts = known.get(entry)
    if (facts === undefined) {
      facts = read(entry)
      known.set(entry, facts)
    }
    return facts
  }
}

/** Places a net over all wider prefixes. */
function placeNet(builder: TrieBuilder, pool: FactsPool, trie: Subtree, net: Net): Subtree {
  const facts = pool.ofNet(net)
  const placed = new Map<number, number>()
  const place = (under: number): number => {
    const known = placed.get(under)
    if (known !== undefined) return known
    const result = pool.overlay(facts, under)
    placed.set(under, result)
    return result
  }
  const { bytes, bits } = net.cidr
  return builder.graft(trie, bytes, bits, (subtree) => builder.map([subtree], place)[0]!)
}

/**
 * Numbers the classes in order of appearance. A class is a list of codes that match, and an order of points; the empty
 * list without an order is class 0.
 */
function numberClasses(pool: FactsPool): {
  classOf: (facts: number) => number
  codesOf: GeoCode[][]
  orderOf: number[]
} {
  const codesOf: GeoCode[][] = [[]]
  // Many classes differ in their order only.
  const lists = new Map<string, GeoCode[]>()
  const orderOf = [NO_ORDER]
  const classByKey = new Map<string, number>([[`|${NO_ORDER}`, 0]])
  const classByFacts = new Int32Array(pool.size).fill(-1)
  const classOf = (facts: number): number => {
    if (classByFacts[facts] === -1) classByFacts[facts] = numberOf(facts)
    return classByFacts[facts]!
  }
  const numberOf = (facts: number): number => {
    const codes = pool.codesOf(facts)
    const order = pool.orderOf(facts)
    const texts = codes.map((code) => code.text).join()
    const key = `${texts}|${order}`
    const known = classByKey.get(key)
    if (known !== undefined) return known
    classByKey.set(key, codesOf.length)
    const list = lists.get(texts) ?? codes
    lists.set(texts, list)
    orderOf.push(order)
    return codesOf.push(list) - 1
  }
  return { classOf, codesOf, orderOf }
}
