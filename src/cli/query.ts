import { lookup } from 'node:dns/promises'
import { systemClock } from '../base/clock.ts'
import { type Answered, ask, PAYLOAD_OCTETS } from '../client/ask.ts'
import { composeClientSubnet } from '../dns/edns/client-subnet.ts'
import type { HostPort } from '../dns/host-port.ts'
import { OptionCode, Rcode, RRType } from '../dns/iana/index.ts'
import { EDNS_DNSSEC_OK, HeaderFlag } from '../dns/message/header.ts'
import type { EdnsOption, Message } from '../dns/message/message.ts'
import { printMessage } from '../dns/message/print-message.ts'
import { printRdata } from '../dns/rdata/index.ts'
import { scanAddress } from '../dns/text/address.ts'
import { linesOfData } from './data-format.ts'
import { type QueryArgs, scanQueryArgs } from './query-args.ts'
import { dataOfMessage } from './query-data.ts'

/** Exit codes of dig. */
const EXIT_ANSWER = 0
const EXIT_USAGE = 1
const EXIT_NO_REPLY = 9

type Reply = Extract<Answered, { kind: 'reply' }>

/**
 * `sextant query`: sends a query to one server and prints the reply as dig does. `out` and `err`
 * accept a line each, without its end. Returns the exit code: 0 for any reply, 1 for invalid
 * arguments, 9 for no reply.
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
  const server = { host: address, port: scanned.port }
  if (scanned.type === RRType.AXFR) return runTransfer(scanned, server, out, err)
  const start = systemClock.monotonic()
  const answered = await askServer(scanned, server, err)
  if (answered === undefined) {
    err(';; no servers could be reached')
    return EXIT_NO_REPLY
  }
  const elapsedMs = systemClock.monotonic() - start
  const asked = { args, name: scanned.server, server, elapsedMs }
  const lines = linesOfData(scanned.format, {
    data: () => dataOfReply(answered, asked),
    table: () => (scanned.short ? shortLines(answered.message) : longLines(answered, asked)),
  })
  for (const line of lines) out(line)
  return EXIT_ANSWER
}

async function runTransfer(
  args: QueryArgs,
  server: HostPort,
  out: (text: string) => void,
  err: (text: string) => void,
): Promise<number> {
  const { printTransfer } = await import('./query-transfer.ts')
  const fault = await printTransfer(args, server, out)
  if (fault === '') return EXIT_ANSWER
  err(`; Transfer failed: ${fault}`)
  return EXIT_NO_REPLY
}

/**
 * The server's address: `server` itself, or the first address that the system's resolver returns
 * for a host name.
 */
async function addressOf(server: string): Promise<string | undefined> {
  if (scanAddress(server) !== undefined) return server
  return lookup(server).then(
    ({ address }) => address,
    () => undefined,
  )
}

/** Returns the reply. Prints failures to `err` with dig's messages. */
async function askServer(
  args: QueryArgs,
  server: HostPort,
  err: (text: string) => void,
): Promise<Reply | undefined> {
  const tries = args.tcp ? 0 : args.tries
  const query = composeQuery(args)
  const answered = await ask({
    server,
    query,
    tries,
    timeoutMs: args.timeoutSeconds * 1000,
    key: args.key,
  })
  if (answered.overTcp && !args.tcp) err(';; Truncated, retrying in TCP mode.')
  if (answered.kind === 'reply') return answered
  err(`;; communications error to ${server.host}#${server.port}: ${answered.reason}`)
  return undefined
}

function composeQuery(args: QueryArgs): Omit<Message, 'id'> {
  const options: EdnsOption[] = []
  if (args.nsid) options.push({ code: OptionCode.NSID, data: new Uint8Array(0) })
  if (args.zoneVersion) options.push({ code: OptionCode.ZONEVERSION, data: new Uint8Array(0) })
  if (args.subnet !== undefined) {
    options.push({ code: OptionCode.ECS, data: composeClientSubnet(args.subnet) })
  }
  return {
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

function shortLines({ answer }: Message): string[] {
  return answer.map(({ type, rdata }) => printRdata(type, rdata))
}

/** The question and the server of a query, for what is printed with its reply. */
interface Asked {
  readonly args: readonly string[]
  /** The server as the arguments name it. */
  readonly name: string
  readonly server: HostPort
  readonly elapsedMs: number
}

function longLines(
  { message, octets, overTcp }: Reply,
  { args, name, server, elapsedMs }: Asked,
): string[] {
  return [
    '',
    `; <<>> Sextant <<>> ${args.join(' ')}`,
    ';; Got answer:',
    // The last line already ends with a newline.
    ...printMessage(message).slice(0, -1).split('\n'),
    `;; Query time: ${Math.round(elapsedMs)} msec`,
    `;; SERVER: ${server.host}#${server.port}(${name}) (${overTcp ? 'TCP' : 'UDP'})`,
    `;; MSG SIZE  rcvd: ${octets.length}`,
  ]
}

function dataOfReply({ message, octets, overTcp }: Reply, { server, elapsedMs }: Asked) {
  return {
    ...dataOfMessage(message),
    server: `${server.host}#${server.port}`,
    transport: overTcp ? 'TCP' : 'UDP',
    milliseconds: Math.round(elapsedMs),
    octets: octets.length,
  }
}
