import type { Query } from '../dns/message/query.ts'
import type { HashedName } from '../zone/image/hashed-name.ts'
import type { ZoneAnswerer } from '../zone/lookup/answer.ts'
import type { Handler } from './handler.ts'
import type { Transaction } from './transaction.ts'

/*
 * Most queries are plain: class IN, over UDP, for a name that has records of the queried type. That
 * type's rdata is sent unchanged and needs no additional records. Only the records depend on such a
 * query. So the effect of a chain's links is decided at load, and the server answers without
 * calling the links.
 */

/** The source of a chain's plain answers. */
export interface FastPathSource {
  /** The directive's name. */
  readonly name: string
  /**
   * A different object whenever `find` may return something else for any query; undefined = it
   * answers no query.
   */
  readonly holder: object | undefined
  /** Labels of the deepest zone that `find` distinguishes. */
  readonly deepest: number
  /** Returns the answerer of the name, if its zone is here and loaded. */
  find(name: HashedName): ZoneAnswerer | undefined
}

/** The properties that all plain queries of one listen address, zone and view share. */
export interface FastPathZone {
  /** Label values of metrics, as in `SlotLabels`. */
  readonly server: string
  readonly zone: string
  readonly view: string
  /** The directive that answers. */
  readonly answeredBy: string
}

/**
 * Observes plain queries with their answers, which are NOERROR. The question is in `simpleQuery`
 * (dns/message/plain-query.ts); `tx` has the addresses, `sentOctets` and the times.
 */
export interface FastPathObserver {
  /** True: it reads more of `tx`, which then has everything except the records of the answer. */
  readonly readsAll: boolean
  /** @hot */
  observe(tx: Transaction): void
}

/**
 * Decides which plain queries a link has to process itself. The question is in `simpleQuery`;
 * `query` has only the addresses.
 */
export interface FastPathGuard {
  /**
   * False: the whole chain serves the query. Changes and counts nothing, because other guards may
   * still refuse it. @hot
   */
  passes(query: Query): boolean
}

/** The effect of a link on plain queries and their answers. */
export type FastPathRole =
  /**
   * No effect. `ifOne`: only if the answer has one record. `gate`: only for queries that it lets
   * pass.
   */
  | {
      readonly kind: 'pass'
      readonly ifOne?: boolean
      readonly gate?: FastPathGuard
      readonly next: Handler
    }
  /** Uses the network of a client subnet as the client. */
  | { readonly kind: 'subnet'; readonly next: Handler }
  /** Counts or logs the answer, changes nothing, and does not read its records. `gate`: as above. */
  | {
      readonly kind: 'observe'
      readonly gate?: FastPathGuard
      /** Makes the observer of a place's answers; undefined = none is needed. */
      readonly observer: (place: FastPathZone) => FastPathObserver | undefined
      readonly next: Handler
    }
  /** Answers. */
  | { readonly kind: 'answer'; readonly source: FastPathSource }

/** The effect of a whole chain on plain queries. */
export interface FastPathChain {
  readonly source: FastPathSource
  /** Whether a client subnet replaces the client's address. */
  readonly takesSubnet: boolean
  /** Innermost first. */
  readonly observers: readonly FastPathObserver[]
  /** A query that one of them does not let pass is not plain. */
  readonly gates: readonly FastPathGuard[]
  /** True if only answers with one record are plain. */
  readonly onlyOne: boolean
}

/**
 * Plans the fast path of a chain. `at`: the place of the chain. Returns undefined if some link has
 * to process every query.
 */
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
