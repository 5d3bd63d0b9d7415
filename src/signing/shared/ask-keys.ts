import type { ask as askServer } from '../../client/ask.ts'
import { questionOf } from '../../client/ask.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../../dns/iana/index.ts'
import { HeaderFlag } from '../../dns/message/header.ts'
import type { Message } from '../../dns/message/message.ts'
import { printName } from '../../dns/name/name.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { composeKeyQuestion, createNonce } from './key-question.ts'
import { scanKeyReply } from './key-reply.ts'
import { contextOf } from './key-share.ts'
import { digestText, unseal } from './seal.ts'

const TIMEOUT_MS = 3000

/** A question for the keys of a zone. */
interface AskedKeys {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  readonly server: HostPort
  /** Source address; '' = any. */
  readonly source: string
  readonly key: TsigKey
  /** The text that the server sent last; '' = none. */
  readonly held: string
  readonly signal?: AbortSignal
}

export type AnsweredKeys =
  /** The server has what this one has. */
  | { readonly kind: 'current' }
  | { readonly kind: 'keys'; readonly text: string }
  /** `isSilent`: it did not answer at all. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isSilent: boolean }

/** Asks a server for the keys of a zone. Never rejects. */
export async function askKeys(asked: AskedKeys, ask: typeof askServer): Promise<AnsweredKeys> {
  const { zone, server, source, key, held, signal } = asked
  const nonce = createNonce()
  const name = composeKeyQuestion({ zone, nonce, digest: digestText(held, key.secret, nonce) })
  if (name === undefined) return failed(asked, `the name ${printName(zone)} is too long`)
  const query = questionOf(name, RRType.TXT)
  const answered = await ask({
    server,
    query,
    timeoutMs: TIMEOUT_MS,
    tries: 0,
    source,
    key,
    signal,
  })
  if (answered.kind === 'failed') {
    const isSilent = answered.unverified === undefined
    return failed(asked, explainFailure(answered.reason, key), isSilent)
  }
  const { message } = answered
  const record = message.answer.find(({ type }) => type === RRType.TXT)
  if (message.rcode !== Rcode.NOERROR || record === undefined)
    return failed(asked, explainRefusal(message, asked))
  if ((message.flags & HeaderFlag.TC) !== 0) return failed(asked, 'the reply is truncated')
  const reply = scanKeyReply(record.rdata)
  if (reply.kind === 'current') return reply
  if (reply.kind === 'unknown') {
    const fix = 'update the server that is older'
    return failed(asked, `it sends keys in format ${reply.format}, which is unknown here; ${fix}`)
  }
  const text = unseal(reply.octets, key.secret, contextOf({ zone, nonce }))
  return text === undefined
    ? failed(asked, 'the reply cannot be decrypted')
    : { kind: 'keys', text }
}

function failed({ server }: AskedKeys, reason: string, isSilent = false): AnsweredKeys {
  return { kind: 'failed', reason: `${printHostPort(server)}: ${reason}`, isSilent }
}

/** What to do about a reply without a valid signature. */
function explainFailure(reason: string, { nameText }: TsigKey): string {
  const fixes: readonly (readonly [RegExp, string])[] = [
    [/BADKEY/, `add the key ${nameText} to its directive tsig, in the block of the zone`],
    [/BADSIG/, `use the same secret for the key ${nameText} on both servers`],
    [/BADTIME|the time of the signature/, 'set the clocks of both servers'],
    [/is not signed/, `add tsig with the key ${nameText} to its block of the zone`],
  ]
  const fix = fixes.find(([pattern]) => pattern.test(reason))?.[1]
  return fix === undefined ? reason : `${reason}; ${fix}`
}

function explainRefusal({ rcode }: Message, { zone, key }: AskedKeys): string {
  const name = printName(zone)
  if (rcode === Rcode.SERVFAIL) return `it has no usable keys of ${name}: see its log`
  const fix = `add share ${key.nameText} to its directive dnssec of ${name}`
  return `it does not share the keys of ${name} with the key ${key.nameText}, ${printRcode(rcode)}; ${fix}`
}
