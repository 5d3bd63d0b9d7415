import { ask, questionOf } from '../client/ask.ts'
import type { Endpoint } from '../dns/endpoint.ts'
import { printRcode, Rcode, RRType } from '../dns/iana/index.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import { KDRNT_ZONE } from '../record/kdrnt.ts'
import { SOA_OCTETS_MIN, soaSerial } from '../zone/inbound/transfer-reader.ts'

/** One question, and how often it is sent. */
const QUESTION_MS = 1000
const QUESTION_TRIES = 2

/** Asks a peer for the serial of its zone kdrnt; a string says why there is none. Never rejects. */
export async function askSerial(
  server: Endpoint,
  options: {
    readonly key: TsigKey | undefined
    readonly source: string
    readonly signal: AbortSignal
  },
): Promise<number | string> {
  const answered = await ask({
    server,
    query: questionOf(KDRNT_ZONE, RRType.SOA),
    timeoutMs: QUESTION_MS,
    tries: QUESTION_TRIES,
    ...options,
  })
  if (answered.kind === 'failed') return answered.reason
  const { rcode, answer } = answered.message
  if (rcode !== Rcode.NOERROR) return `it answers ${printRcode(rcode)} to a question for kdrnt`
  const soa = answer.find(
    ({ type, rdata }) => type === RRType.SOA && rdata.length >= SOA_OCTETS_MIN,
  )
  return soa === undefined ? 'it has no zone kdrnt' : soaSerial(soa)
}
