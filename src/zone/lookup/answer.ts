import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import type { ZoneReader } from '../image/reader.ts'
import type { Steerer } from './steerer.ts'

/** What `ZoneAnswerer.answer` came to. */
export const AnswerStatus = {
  /** The response is complete, rcode included (NOERROR, NXDOMAIN or YXDOMAIN). */
  Answered: 0,
  /** No zone of the image holds the qname; the response is untouched. */
  NotInZone: 1,
  /** A chain left all zones: the response holds it so far, `chaseTarget` is where it leads. */
  ChaseOutside: 2,
  /** A chain is a loop or too long: the response holds what was found, as NOERROR. */
  ChainTooLong: 3,
} as const
export type AnswerStatus = (typeof AnswerStatus)[keyof typeof AnswerStatus]

export interface AnswerOptions {
  /** Adds the apex NS RRset to the authority section of positive answers, as CoreDNS does. */
  readonly apexNsInAuthority?: boolean
  /** Most CNAMEs in one chain; default 8. */
  readonly chainMax?: number
}

/** Answers queries from a zone image. One per handler and thread; not reentrant. */
export class ZoneAnswerer {
  /** After ChaseOutside: the target, lower-case wire form; valid until the next `answer`. */
  chaseTarget: Uint8Array = new Uint8Array(256)
  chaseTargetOctets = 0
  /** CNAMEs followed by the last `answer`. */
  chainSteps = 0
  readonly reader: ZoneReader

  constructor(reader: ZoneReader, _steerer?: Steerer, _options: AnswerOptions = {}) {
    this.reader = reader
  }

  /** `chainDepth`: CNAME steps that were taken before, by queries that asked this one. */
  answer(_query: Query, _response: Response, _chainDepth = 0): AnswerStatus {
    return AnswerStatus.NotInZone
  }
}
