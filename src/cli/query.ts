import { randomInt } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { systemClock } from '../base/clock.ts'
import { composeClientSubnet } from '../dns/edns/client-subnet.ts'
import { OptionCode, Rcode } from '../dns/iana/index.ts'
import {
  composeMessage,
  EDNS_DNSSEC_OK,
  type EdnsOption,
  HeaderFlag,
  type Message,
  parseMessage,
  printMessage,
} from '../dns/message/message.ts'
import { equalNames } from '../dns/name/name.ts'
import { printRdata } from '../dns/rdata/index.ts'
import { scanAddress } from '../dns/text/address.ts'
import { type ExchangeResult, exchangeTcp, exchangeUdp, type Peer } from './exchange.ts'
import { type QueryArgs, scanQueryArgs } from './query-args.ts'

/** Exit codes of dig. */
const EXIT_ANSWER = 0
const EXIT_USAGE = 1
const EXIT_NO_REPLY = 9

/** Largest UDP reply to ask for: what passes everywhere unfragmented (DNS flag day 2020). */
const PAYLOAD_OCTETS = 1232

/** A reply and how it came. */
interface Answered {
  readonly octets: Uint8Array
  readonly message: Message
  readonly protocol: 'UDP' | 'TCP'
}

/**
 * `sextant query`: asks one server and prints what it says as dig does. `out` and `err` take a line
 * each, without its end. Returns the exit code: 0 for any reply, 1 for bad arguments, 9 for no reply.
 */
export async function runQuery(
  args: readonly string[],
  out: (text: string) => void,
  err: (text: string) => void,
): Promise<number> {
  const scanned = scanQueryArgs(args)
  if (typeof scanned === 'string') {
    err(scanned)
    return EXIT_USAGE
  }
  const address = await addressOf(scanned.server)
  if (address === undefined) {
    err(`couldn't get address for ${JSON.stringify(scanned.server)}: not found`)
    return EXIT_NO_REPLY
  }
  const peer = { address, port: scanned.port, timeoutMs: scanned.timeoutSeconds * 1000 }
  const start = systemClock.monotonic()
  const answered = await ask(scanned, peer, err)
  if (answered === undefined) {
    err(';; no servers could be reached')
    return EXIT_NO_REPLY
  }
  const elapsedMs = systemClock.monotonic() - start
  if (scanned.short) printShort(answered.message, out)
  else printLong(answered, scanned, peer, elapsedMs, args, out)
  return EXIT_ANSWER
}

/** The server's address: itself, or the first that the system's resolver gives for a host name. */
async function addressOf(server: string): Promise<string | undefined> {
  if (scanAddress(server) !== undefined) return server
  return lookup(server).then(
    ({ address }) => address,
    () => undefined,
  )
}

/** Over UDP, and again over TCP if the reply was cut short. */
async function ask(
  args: QueryArgs,
  peer: Peer,
  err: (text: string) => void,
): Promise<Answered | undefined> {
  const query = composeQuery(args)
  const octets = composeMessage(query)
  const isReply = (reply: Uint8Array) => replyTo(query, reply) !== undefined
  if (!args.tcp) {
    const result = await exchangeUdp(octets, peer, args.tries, isReply)
    const answered = accept(result, query, 'UDP', peer, err)
    if (answered === undefined || (answered.message.flags & HeaderFlag.TC) === 0) return answered
    err(';; Truncated, retrying in TCP mode.')
  }
  return accept(await exchangeTcp(octets, peer, isReply), query, 'TCP', peer, err)
}

function accept(
  result: ExchangeResult,
  query: Message,
  protocol: 'UDP' | 'TCP',
  peer: Peer,
  err: (text: string) => void,
): Answered | undefined {
  if ('failure' in result) {
    err(`;; communications error to ${peer.address}#${peer.port}: ${result.failure}`)
    return undefined
  }
  const message = replyTo(query, result)
  return message && { octets: result, message, protocol }
}

function composeQuery(args: QueryArgs): Message {
  const options: EdnsOption[] = []
  if (args.nsid) options.push({ code: OptionCode.NSID, data: new Uint8Array(0) })
  if (args.subnet !== undefined) {
    options.push({ code: OptionCode.ECS, data: composeClientSubnet(args.subnet) })
  }
  return {
    id: randomInt(65536),
    opcode: 0,
    flags: args.recurse ? HeaderFlag.RD : 0,
    rcode: Rcode.NOERROR,
    question: { name: args.name, type: args.type, rrclass: args.rrclass },
    answer: [],
    authority: [],
    additional: [],
    edns: {
      payloadOctets: PAYLOAD_OCTETS,
      version: 0,
      flags: args.dnssecOk ? EDNS_DNSSEC_OK : 0,
      options,
    },
  }
}

/**
 * The message in `octets` if it is the reply to `query`: a response with its id and question. An error
 * may come without a question, from a server that could not read it.
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

function printShort(message: Message, out: (text: string) => void): void {
  for (const { type, rdata } of message.answer) out(printRdata(type, rdata))
}

function printLong(
  { message, octets, protocol }: Answered,
  { server }: QueryArgs,
  { address, port }: Peer,
  elapsedMs: number,
  args: readonly string[],
  out: (text: string) => void,
): void {
  out('')
  out(`; <<>> Sextant <<>> ${args.join(' ')}`)
  out(';; Got answer:')
  // The last line is ended already.
  for (const line of printMessage(message).slice(0, -1).split('\n')) out(line)
  out(`;; Query time: ${Math.round(elapsedMs)} msec`)
  out(`;; SERVER: ${address}#${port}(${server}) (${protocol})`)
  out(`;; MSG SIZE  rcvd: ${octets.length}`)
}
