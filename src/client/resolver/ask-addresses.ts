import type { HostPort } from '../../dns/host-port.ts'
import { printRcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { AddressFamily } from '../../dns/text/address.ts'
import { type Answered, ask, questionOf } from '../ask.ts'
import { type Observation, observeReply, observeSilence } from './observation.ts'

/** One query for addresses, to one server. */
export interface AddressQuery {
  readonly server: HostPort
  /** Lower-case wire form. */
  readonly name: Uint8Array
  readonly family: AddressFamily
  /** The query is sent once, with a short timeout: other names wait. Missing = false. */
  readonly isHurried?: boolean
  readonly signal: AbortSignal
}

/** Limits of a query in a hurry. */
const HURRIED = { timeoutMs: 1000, tries: 1 }

/** Sends a query. Never rejects. */
export type AskAddresses = (query: AddressQuery) => Promise<Answered>

/**
 * Asks with recursion, and over TCP if the reply was truncated. `tries`: UDP attempts of `timeoutMs`
 * each; 0 = only TCP.
 */
export function askerOf(limits: {
  readonly timeoutMs: number
  readonly tries: number
}): AskAddresses {
  return ({ server, name, family, isHurried = false, signal }) => {
    const type = family === 1 ? RRType.A : RRType.AAAA
    return ask({
      server,
      query: { ...questionOf(name, type), flags: HeaderFlag.RD },
      ...(isHurried ? HURRIED : limits),
      signal,
    })
  }
}

export const askAddresses: AskAddresses = askerOf({ timeoutMs: 2000, tries: 2 })

/** What the result of a query says about its name. `atMs`: monotonic time of the reply. */
export function observeAnswered(
  { server, name, family }: AddressQuery,
  answered: Answered,
  atMs: number,
): Observation {
  const text = server.host.includes(':')
    ? `[${server.host}]:${server.port}`
    : `${server.host}:${server.port}`
  const asked = { name, family, atMs, server: text }
  if (answered.kind === 'failed') return observeSilence(asked, answered.reason)
  // An error may come without a question.
  const observed = observeReply(answered.message, atMs, text)
  if (observed !== undefined) return observed
  return { ...observeSilence(asked, printRcode(answered.message.rcode)), isReply: true }
}
