import { EdeCode } from '../../dns/iana/options.ts'
import { Rcode } from '../../dns/iana/rcodes.ts'
import type { Query } from '../../dns/message/query.ts'
import type { Response } from '../../dns/message/response.ts'
import type { ZoneDirectory } from '../../dns/name/zone-directory.ts'
import { AnswerStatus, ZoneAnswerer } from './answer.ts'

const TEXT = new Uint8Array(Buffer.from('zones of a snapshot'))

/** Answers from zones that may be old, and says so (RFC 8914). A class of its own: others pay nothing for it. */
export class StaleAnswerer extends ZoneAnswerer {
  /** Direct answers would not say it. */
  override readonly direct = undefined

  override answer(
    query: Query,
    response: Response,
    chainDepth?: number,
    server?: ZoneDirectory,
    others?: ZoneDirectory,
  ): AnswerStatus {
    const status = super.answer(query, response, chainDepth, server, others)
    if (status === AnswerStatus.NotInZone || response.edeCode >= 0) return status
    const isNxdomain = response.rcode === Rcode.NXDOMAIN
    response.edeCode = isNxdomain ? EdeCode.STALE_NXDOMAIN_ANSWER : EdeCode.STALE_ANSWER
    response.edeText = TEXT
    return status
  }
}
