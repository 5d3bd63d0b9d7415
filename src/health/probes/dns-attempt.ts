import { type Answered, ask, questionOf } from '../../client/ask.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { CheckOf } from '../../records/health-check.ts'
import { scanHost } from '../../records/validate/names.ts'
import type { Begin } from './begin.ts'
import type { ProbeOutcome } from './probe.ts'

/** UDP attempts, and the longest wait for the answer to one of them. */
const TRIES = 3
const TRY_MS_MAX = 2000

/** Sends one question over UDP, and over TCP if the answer is truncated. */
export const beginDns: Begin<'DNS'> = ({ ip, check }, { onDone }) => {
  const { name, type } = check.query
  const abort = new AbortController()
  // Without EDNS, which a server need not support. Forwarding servers want RD.
  const question = questionOf(scanHost(name)!, type)
  const query = { ...question, flags: HeaderFlag.RD, edns: undefined }
  const server = { host: ip, port: check.port }
  // Several tries fit into a short interval.
  const timeoutMs = Math.min(TRY_MS_MAX, check.intervalMs / (TRIES + 1))
  const asked = { server, query, timeoutMs, tries: TRIES, signal: abort.signal }
  void ask(asked).then((answered) => onDone(outcomeOf(answered, check)))
  return () => abort.abort()
}

function outcomeOf(answered: Answered, check: CheckOf<'DNS'>): ProbeOutcome {
  const reason = answered.kind === 'failed' ? answered.reason : faultOf(answered.message, check)
  if (reason === '') return { kind: 'healthy', httpStatus: 0 }
  return { kind: 'unhealthy', httpStatus: 0, reason }
}

/** Returns how an answer differs from what the check expects; '' = it does not. */
function faultOf(
  { rcode, answer }: Extract<Answered, { kind: 'reply' }>['message'],
  { expectedRcode = Rcode.NOERROR, expectedAddress }: CheckOf<'DNS'>,
): string {
  const code = `rcode ${printRcode(rcode)}`
  if (rcode !== expectedRcode) return code
  if (expectedAddress === undefined) return ''
  const { bytes } = scanAddress(expectedAddress)!
  const isThere = answer.some(({ type, rdata }) => {
    return (type === RRType.A || type === RRType.AAAA) && Buffer.compare(rdata, bytes) === 0
  })
  return isThere ? '' : `${code}, but the answer lacks the expected address`
}
