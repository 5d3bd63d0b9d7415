import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { scanType } from '../../src/dns/iana/types.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { scanCidr } from '../../src/dns/text/address.ts'

/** A question as a test writes it: `{ name: 'app.k.example.com', type: 'A', subnet: '81.2.69.0/24' }`. */
export interface Question {
  readonly name: string
  readonly type: string
  /** EDNS Client Subnet to send. */
  readonly subnet?: string
  readonly dnssecOk?: boolean
  /** The flag CO (RFC 9824). */
  readonly compactOk?: boolean
  /** RD; default: true. */
  readonly isRecursive?: boolean
}

/** Composes a query by hand, so that tests don't check our composer with itself. RFC 1035 section 4. */
export function composeQuery(question: Question, id: number): Buffer {
  const name = scanName(question.name.endsWith('.') ? question.name : `${question.name}.`)
  const type = scanType(question.type)
  if (name === undefined || type === undefined) throw new Error(`bad question ${question.name}`)
  const option = question.subnet === undefined ? Buffer.alloc(0) : composeSubnet(question.subnet)
  const header = words(id, question.isRecursive === false ? 0 : 0x0100, 1, 0, 0, 1)
  const flags = (question.dnssecOk ? 0x8000 : 0) | (question.compactOk ? 0x4000 : 0)
  const opt = Buffer.concat([Buffer.from([0]), words(41, 1232, 0, flags, option.length)])
  return Buffer.concat([header, name, words(type, 1), opt, option])
}

function composeSubnet(text: string): Buffer {
  const cidr = scanCidr(text)
  if (cidr === undefined) throw new Error(`bad subnet ${text}`)
  const address = cidr.bytes.subarray(0, Math.ceil(cidr.bits / 8))
  const data = Buffer.concat([words(cidr.family), Buffer.from([cidr.bits, 0]), address])
  return Buffer.concat([words(8, data.length), data])
}

function words(...values: number[]): Buffer {
  const out = Buffer.alloc(values.length * 2)
  for (const [index, value] of values.entries()) out.writeUInt16BE(value, index * 2)
  return out
}

/** Asks one server over UDP, many questions in flight; a question without a reply is asked again. */
export class UdpClient {
  readonly #socket: Socket
  readonly #waiting = new Map<number, (reply: Buffer) => void>()
  #id = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (reply) => {
      const id = reply.readUInt16BE(0)
      const resolve = this.#waiting.get(id)
      this.#waiting.delete(id)
      resolve?.(reply)
    })
    // No server listens there now: the query is sent again.
    socket.on('error', () => {})
  }

  /** `from`: the address of the client. */
  static async connect(port: number, from = '127.0.0.1'): Promise<UdpClient> {
    const socket = createSocket('udp4')
    socket.bind(0, from)
    await once(socket, 'listening')
    socket.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new UdpClient(socket)
  }

  /** Resolves to the reply, however late; asks up to `tries` times, every `timeoutMs`, and then rejects. */
  ask(question: Question, tries = 60, timeoutMs = 1000): Promise<Buffer> {
    this.#id = (this.#id + 1) & 0xffff
    const id = this.#id
    const packet = composeQuery(question, id)
    return new Promise((resolve, reject) => {
      let left = tries
      const send = (): void => {
        if (left-- > 0) {
          this.#socket.send(packet)
          return
        }
        clearInterval(timer)
        this.#waiting.delete(id)
        reject(new Error(`no reply for ${question.name} ${question.type}`))
      }
      const timer = setInterval(send, timeoutMs)
      this.#waiting.set(id, (reply) => {
        clearInterval(timer)
        resolve(reply)
      })
      send()
    })
  }

  close(): void {
    this.#socket.close()
  }
}
