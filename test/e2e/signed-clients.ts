import { printRcode, printType, Rcode, RRType } from '../../src/dns/iana/index.ts'
import { HeaderFlag } from '../../src/dns/message/header.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printName } from '../../src/dns/name/name.ts'
import { type Question, UdpClient } from '../support/client.ts'
import { faultsOfMessage } from '../support/response-validator.ts'
import { until } from '../support/until.ts'
import { wire } from '../support/zone-names.ts'
import type { RunningResolver } from './resolvers.ts'

/** How many questions each client has in flight. */
const WINDOW = 4
/** A server may be stopped or restarted while a question waits. */
const TRIES = 120

/** Checks a reply to a query with DO. */
type CheckReply = (reply: Buffer) => void

/** Ask resolvers and servers all the time, and note which answers do not validate. */
export class SignedClients {
  readonly faults: string[] = []
  readonly #counts = new Map<string, number>()
  readonly #loops: Promise<void>[] = []
  readonly #clients: UdpClient[] = []
  readonly #next: () => Question
  #isStopped = false

  /** `next`: returns the next question. */
  constructor(next: () => Question) {
    this.#next = next
  }

  /** Answers so far. */
  get count(): number {
    return [...this.#counts.values()].reduce((sum, count) => sum + count, 0)
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  countOf(who: string): number {
    return this.#counts.get(who) ?? 0
  }

  note(who: string): void {
    this.#counts.set(who, this.countOf(who) + 1)
  }

  /** Each answer of the resolver must have AD. */
  async askResolver({ name, port }: RunningResolver): Promise<void> {
    await this.#ask(name, port, (reply) => this.#checkResolved(name, reply))
  }

  async askServer(who: string, port: number, check: CheckReply): Promise<void> {
    await this.#ask(who, port, check)
  }

  /** Runs `work` until `stop`. */
  repeat(work: () => Promise<void>): void {
    this.#loops.push(this.#repeat(work))
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await Promise.all(this.#loops)
    for (const client of this.#clients) client.close()
  }

  async #ask(who: string, port: number, check: CheckReply): Promise<void> {
    const client = await UdpClient.connect(port)
    this.#clients.push(client)
    const ask = async (): Promise<void> => {
      const reply = await client.ask({ ...this.#next(), dnssecOk: true }, TRIES)
      this.note(who)
      check(reply)
    }
    for (let i = 0; i < WINDOW; i++) this.repeat(ask)
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    while (!this.#isStopped) await work()
  }

  #checkResolved(who: string, octets: Buffer): void {
    const reply = parseMessage(octets)!
    if ((reply.flags & HeaderFlag.TC) !== 0) return
    const isAnswered = reply.rcode === Rcode.NOERROR || reply.rcode === Rcode.NXDOMAIN
    if (isAnswered && (reply.flags & HeaderFlag.AD) !== 0) return
    const { question, edns } = reply
    const what = `${printName(question!.name)} ${printType(question!.type)}`
    const errors = edns?.options
      .filter(({ code }) => code === 15)
      .map(({ data }) => printError(data))
    const got = `${printRcode(reply.rcode)}, flags ${reply.flags.toString(16)} ${errors}`
    this.faults.push(`${new Date().toISOString()} ${who}: ${what}: ${got}`)
  }
}

/** Waits until a server serves a zone, without the final dot; returns the rdata of its DNSKEY records. */
export async function dnskeysOf(port: number, zone: string): Promise<readonly Uint8Array[]> {
  const client = await UdpClient.connect(port)
  let found: readonly Uint8Array[] = []
  await until(async () => {
    const reply = parseMessage(await client.ask({ name: zone, type: 'DNSKEY' }))!
    found = reply.answer.filter(({ type }) => type === RRType.DNSKEY).map(({ rdata }) => rdata)
    return found.length > 0
  }, `the keys of ${zone}`)
  client.close()
  return found
}

/** The strictest validator of replies of a zone whose keys do not change. */
export function strictCheck(
  clients: SignedClients,
  zone: string,
  dnskeys: readonly Uint8Array[],
): CheckReply {
  const apex = wire(`${zone}.`)
  return (octets) => {
    const reply = parseMessage(octets)!
    if ((reply.flags & HeaderFlag.TC) !== 0) return
    const faults = faultsOfMessage(reply, { apex, dnskeys, nowSeconds: Date.now() / 1000 })
    clients.faults.push(...faults)
  }
}

/** Of an extended error (RFC 8914). */
function printError(data: Uint8Array): string {
  const bytes = Buffer.from(data)
  return `EDE ${bytes.readUInt16BE(0)} ${bytes.toString('latin1', 2)}`
}
