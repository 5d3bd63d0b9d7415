import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { Fallthrough } from '../../plugin/arguments/fallthrough.ts'
import type { Handler } from '../../plugin/handler.ts'
import type { Transaction } from '../../plugin/transaction.ts'
import type { ZoneAnswerer } from '../../zone/lookup/answer.ts'
import type { AnswerSource } from '../../zone/lookup/answer-source.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { answerFromImage, NOT_OURS, withdrawAnswer } from '../authority.ts'

/** Where the handler finds the zones, once they are loaded. */
export interface ServedImage {
  readonly answerer: ZoneAnswerer | undefined
}

interface ClusterHandlerOptions {
  /** Name of the directive. */
  readonly name: string
  readonly image: ServedImage
  /** Lower-case wire form. */
  readonly zones: readonly Uint8Array[]
  readonly fallthrough: Fallthrough
}

export class ClusterHandler implements Handler, AnswerSource {
  readonly name: string
  readonly source: AnswerSource = this
  /** True if a zone exists without `fallthrough`; then `find` returns only such zones. */
  readonly denies: boolean
  readonly #next: Handler
  readonly #image: ServedImage
  readonly #zones: ZoneSet
  readonly #fallthrough: Fallthrough
  /** By zone: direct answers are possible. Names in reverse zones often fall through. */
  readonly #isDirect: readonly boolean[]

  constructor(next: Handler, { name, image, zones, fallthrough }: ClusterHandlerOptions) {
    this.name = name
    this.#next = next
    this.#image = image
    this.#zones = new ZoneSet(zones)
    this.#fallthrough = fallthrough
    const denying = zones.map((zone) => !fallthrough.touches(zone))
    this.denies = denying.includes(true)
    this.#isDirect = this.denies ? denying : zones.map(() => true)
  }

  get holder(): ZoneAnswerer | undefined {
    return this.#image.answerer
  }

  deepestAround(name: HashedName): number {
    return this.#zones.deepestAround(name)
  }

  find(name: HashedName): ZoneAnswerer | undefined {
    const zone = this.#zones.match(name)
    return zone !== -1 && this.#isDirect[zone] ? this.#image.answerer : undefined
  }

  /** @hot */
  serve(tx: Transaction): number | Promise<number> {
    const { query } = tx
    if (query.qclass !== RRClass.IN || this.#zones.match(query) === -1) return this.#next.serve(tx)
    const { answerer } = this.#image
    if (answerer === undefined) return this.#serveUnsynced(tx)
    if (query.qtype === RRType.AXFR || query.qtype === RRType.IXFR) return Rcode.REFUSED
    const status = answerFromImage(tx, answerer)
    if (status === NOT_OURS) return this.#next.serve(tx)
    if (status === Rcode.NXDOMAIN && this.#fallthrough.through(query)) {
      withdrawAnswer(tx.response)
      return this.#next.serve(tx)
    }
    tx.response.answeredBy = this.name
    return status
  }

  #serveUnsynced(tx: Transaction): number | Promise<number> {
    if (this.#fallthrough.through(tx.query)) return this.#next.serve(tx)
    tx.response.error = 'the cluster is not read yet'
    return Rcode.SERVFAIL
  }
}
