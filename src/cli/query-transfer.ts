import { randomInt } from 'node:crypto'
import { systemTimers } from '../base/timers.ts'
import { askPrimary } from '../client/ask-primary.ts'
import type { HostPort } from '../dns/host-port.ts'
import { Opcode, printRcode, Rcode, RRType } from '../dns/iana/index.ts'
import { composeMessage } from '../dns/message/compose-message.ts'
import type { Message } from '../dns/message/message.ts'
import { parseMessage } from '../dns/message/parse-message.ts'
import { printRecord } from '../dns/message/print-message.ts'
import { RequestSigner } from '../dns/tsig/request-signer.ts'
import { TransferFault } from '../xfr/in/transfer-reader.ts'
import type { QueryArgs } from './query-args.ts'

const TOTAL_MS = 2 * 60 * 60 * 1000
const OCTETS_MAX = 2 ** 40

/**
 * Transfers a zone over TCP (RFC 5936), signed if a key is given, and passes each record as a line
 * to `out` when it arrives. Resolves to '' or to the reason of a failure.
 */
export async function printTransfer(
  args: QueryArgs,
  server: HostPort,
  out: (text: string) => void,
): Promise<string> {
  const { name, type, rrclass, key, timeoutSeconds } = args
  const id = randomInt(0x10000)
  const plain = composeMessage({
    id,
    opcode: Opcode.QUERY,
    flags: 0,
    rcode: Rcode.NOERROR,
    question: { name, type, rrclass },
    answer: [],
    authority: [],
    additional: [],
    edns: undefined,
  })
  const signer = key === undefined ? undefined : new RequestSigner(key)
  const seconds = (): number => Math.floor(Date.now() / 1000)
  let soas = 0
  const take = (octets: Uint8Array): boolean => {
    const message = parseMessage(octets)
    if (message?.id !== id)
      throw new TransferFault('a message is malformed or does not answer this query')
    const fault = signer?.verify(octets, seconds()) ?? ''
    if (message.rcode !== Rcode.NOERROR) {
      throw new TransferFault(`the server answered ${printRcode(message.rcode)}`)
    }
    if (fault !== '') throw new TransferFault(fault)
    soas += printRecords(message, soas === 0, out)
    if (soas < 2) return false
    if (signer?.isSettled === false) throw new TransferFault('the last message is not signed')
    return true
  }
  const limits = { idleMs: timeoutSeconds * 1000, totalMs: TOTAL_MS, octetsMax: OCTETS_MAX }
  const query = signer === undefined ? plain : signer.sign(plain, seconds())
  const parts = { primary: server, source: '', query, take, timers: systemTimers }
  return askPrimary({ ...parts, ...limits }).then(
    () => '',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
}

/** Prints the records of one message. Returns how many are SOA: a transfer begins and ends with one. */
function printRecords({ answer }: Message, isFirst: boolean, out: (text: string) => void): number {
  if (isFirst && answer[0]?.type !== RRType.SOA) {
    throw new TransferFault('the transfer does not begin with a SOA')
  }
  for (const record of answer) out(printRecord(record))
  return answer.filter(({ type }) => type === RRType.SOA).length
}
