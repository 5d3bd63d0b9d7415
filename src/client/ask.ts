import { randomInt } from 'node:crypto'
import { systemClock } from '../base/clock.ts'
import type { HostPort } from '../dns/host-port.ts'
import { Opcode, printRcode, Rcode, RRClass } from '../dns/iana/index.ts'
import { composeMessage } from '../dns/message/compose-message.ts'
import { HeaderFlag } from '../dns/message/header.ts'
import type { Message, Question } from '../dns/message/message.ts'
import { parseMessage } from '../dns/message/parse-message.ts'
import { equalNames } from '../dns/name/name.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import { RequestSigner } from '../dns/tsig/request-signer.ts'
import { type ExchangeResult, exchangeTcp, exchangeUdp, TIMED_OUT } from './exchange.ts'

/**
 * UDP payload size to advertise: it passes everywhere without fragmentation (DNS flag day 2020).
 */
export const PAYLOAD_OCTETS = 1232

/** A query, and how to send it. */
export interface Asked {
  readonly server: HostPort
  /** Each attempt gets a new random id. */
  readonly query: Omit<Message, 'id'>
  /** Longest wait for one reply over UDP, and for the whole exchange over TCP. */
  readonly timeoutMs: number
  /** Maximum number of UDP attempts; 0 = only TCP. */
  readonly tries: number
  /** Source address of the query; absent or '' = any. */
  readonly source?: string
  /** Signs the query; the reply must be signed with it too. */
  readonly key?: TsigKey | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * The result of a query. `overTcp`: the last attempt was over TCP. `unverified`: the last reply whose signature is
 * missing or wrong; it may be forged.
 */
export type Answered =
  | {
      readonly kind: 'reply'
      readonly message: Message
      readonly octets: Uint8Array
      readonly overTcp: boolean
    }
  | {
      readonly kind: 'failed'
      readonly reason: string
      readonly overTcp: boolean
      readonly unverified?: Message | undefined
    }

/** Returns a plain question with EDNS, as servers send to each other. */
export function questionOf(name: Uint8Array, type: number): Omit<Message, 'id'> {
  const question: Question = { name, type, rrclass: RRClass.IN }
  const edns = { payloadOctets: PAYLOAD_OCTETS, version: 0, flags: 0, options: [] }
  const sections = { answer: [], authority: [], additional: [] }
  return { opcode: Opcode.QUERY, flags: 0, rcode: Rcode.NOERROR, question, ...sections, edns }
}

/**
 * Sends one question over UDP, each time from a new port, and over TCP if the reply was truncated.
 * If a signed question gets no reply, it is repeated over TCP: a server that receives a flood of
 * wrong signatures from our address may drop our UDP queries. Packets with a wrong id, question,
 * sender or signature are ignored. Never rejects.
 */
export async function ask(asked: Asked): Promise<Answered> {
  if (asked.tries > 0) {
    const answered = await exchange(asked, false)
    if (!needsTcp(asked, answered)) return answered
  }
  return exchange(asked, true)
}

function needsTcp({ key }: Asked, answered: Answered): boolean {
  if (answered.kind === 'failed') return key !== undefined && answered.reason === TIMED_OUT
  return (answered.message.flags & HeaderFlag.TC) !== 0
}

async function exchange(asked: Asked, overTcp: boolean): Promise<Answered> {
  const { key, tries } = asked
  const query = { ...asked.query, id: randomInt(0x10000) }
  const plain = composeMessage(query)
  const signer = key === undefined ? undefined : new RequestSigner(key)
  const octets = signer === undefined ? plain : signer.sign(plain, nowSeconds())
  let found: Message | undefined
  let unverified: Message | undefined
  let fault = ''
  const isReply = (reply: Uint8Array): boolean => {
    const message = replyTo(query, reply)
    if (message === undefined) return false
    const wrong = signer?.verify(reply, nowSeconds()) ?? ''
    if (wrong !== '') {
      // A server that can't sign because it lacks the key answers NOTAUTH (RFC 8945 section 5.2.1).
      // That may be forged.
      const says = message.rcode === Rcode.NOERROR ? '' : `, rcode ${printRcode(message.rcode)}`
      fault = `${wrong}${says}`
      unverified = message
      return false
    }
    found = message
    return true
  }
  const result: ExchangeResult = overTcp
    ? await exchangeTcp(octets, asked, isReply)
    : await exchangeUdp(octets, asked, tries, isReply)
  if ('failure' in result)
    return { kind: 'failed', reason: fault || result.failure, overTcp, unverified }
  return { kind: 'reply', message: found!, octets: result, overTcp }
}

function nowSeconds(): number {
  return Math.floor(systemClock.now() / 1000)
}

/**
 * Returns the message in `octets` if it is the reply to `query`: a response with its id and
 * question. An error may come without a question, from a server that could not parse it.
 */
function replyTo(query: Message, octets: Uint8Array): Message | undefined {
  const message = parseMessage(octets)
  if (message === undefined || message.id !== query.id) return undefined
  if ((message.flags & HeaderFlag.QR) === 0) return undefined
  const { question } = message
  if (question === undefined) return message.rcode === Rcode.NOERROR ? undefined : message
  const { name, type, rrclass } = query.question!
  const isSame = question.type === type && question.rrclass === rrclass
  return isSame && equalNames(question.name, name) ? message : undefined
}
