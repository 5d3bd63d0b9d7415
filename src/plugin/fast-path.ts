import type { Query } from '../dns/message/query.ts'
import type { HashedName } from '../zone/image/hashed-name.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { Handler } from './handler.ts'
import type { Transaction } from './transaction.ts'

/*
 * Most queries are plain: class IN, by UDP, for records of a type whose rdata goes out as it is and leads to
 * no others, of a name that has such records itself. Nothing of a chain but the records depends on them, so that
 * what its links do to them is decided at load, and the server answers without going through the links.
 */

/** Where a chain's plain answers come from. */
export interface FastPathSource {
  /** The directive's name. */
  readonly name: string
  /** Another object whenever `find` may have another answer for any query; undefined = it has none for any. */
  readonly holder: object | undefined
  /** Labels of the deepest zone that `find` tells apart. */
  readonly deepest: number
  /** Who answers for the name, if its zone is here and loaded. */
  find(name: HashedName): ZoneAnswerer | undefined
}

/** Where plain queries are answered: what is the same for all of them that come by one way. */
export interface FastPathZone {
  /** Label values of metrics, as in `SlotLabels`. */
  readonly server: string
  readonly zone: string
  readonly view: string
  /** The directive that answers. */
  readonly answeredBy: string
}

/**
 * Sees plain queries with their answers, which are NOERROR. It finds the question in `simpleQuery`
 * (dns/message/plain-query.ts), and in `tx` the addresses, `sentOctets` and the times.
 */
export interface FastPathObserver {
  /** True: it reads more of `tx`, which then has all but the records of the answer. */
  readonly readsAll: boolean
  /** @hot */
  observe(tx: Transaction): void
}

/**
 * Tells which plain queries a link has to see itself. It finds the question in `simpleQuery`, and in `query` the
 * addresses alone.
 */
export interface FastPathGuard {
  /** False: the whole chain serves the query. Changes and counts nothing: others may have to see it yet. @hot */
  passes(query: Query): boolean
}

/** What a link does to plain queries and their answers. */
export type FastPathRole =
  /** Nothing. `ifOne`: where the answer has one record. `gate`: to those that it lets pass. */
  | {
      readonly kind: 'pass'
      readonly ifOne?: boolean
      readonly gate?: FastPathGuard
      readonly next: Handler
    }
  /** Takes the network of a client subnet for the client. */
  | { readonly kind: 'subnet'; readonly next: Handler }
  /** Counts or logs the answer, changes nothing, and does not read its records. `gate`: as above. */
  | {
      readonly kind: 'observe'
      readonly gate?: FastPathGuard
      /** Makes what observes the answers of a place; undefined = they need not be. */
      readonly observer: (place: FastPathZone) => FastPathObserver | undefined
      readonly next: Handler
    }
  /** Answers. */
  | { readonly kind: 'answer'; readonly source: FastPathSource }

/** What a whole chain does to plain queries. */
export interface FastPathChain {
  readonly source: FastPathSource
  /** Whether a client subnet says who the client is. */
  readonly takesSubnet: boolean
  /** From the innermost on. */
  readonly observers: readonly FastPathObserver[]
  /** Queries that one of them does not let pass are not plain. */
  readonly gates: readonly FastPathGuard[]
  /** True where only answers of one record are plain. */
  readonly onlyOne: boolean
}

/** `at`: where the chain is. Undefined = some link has to see every query. */
export function planFastPath(
  chain: Handler,
  at: Omit<FastPathZone, 'answeredBy'>,
): FastPathChain | undefined {
  const makers: ((place: FastPathZone) => FastPathObserver | undefined)[] = []
  const gates: FastPathGuard[] = []
  let takesSubnet = false
  let onlyOne = false
  for (let link = chain.plain; link !== undefined; link = link.next.plain) {
    switch (link.kind) {
      case 'answer': {
        const { source } = link
        const place = { ...at, answeredBy: source.name }
        const observers = makers.reverse().flatMap((make) => make(place) ?? [])
        return { source, takesSubnet, observers, gates, onlyOne }
      }
      case 'subnet':
        takesSubnet = true
        break
      case 'observe':
        makers.push(link.observer)
        if (link.gate !== undefined) gates.push(link.gate)
        break
      default:
        onlyOne ||= link.ifOne === true
        if (link.gate !== undefined) gates.push(link.gate)
    }
  }
  return undefined
}
