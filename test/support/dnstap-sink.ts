import { connect, createServer, type NetConnectOpts, type Server, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect as connectTls,
  createServer as createTlsServer,
} from 'node:tls'
import type { Test } from 'tap'

const CONTENT_TYPE = 'protobuf:dnstap.Dnstap'

/** A field of a protobuf message: its number, and its value or its octets. */
export type ProtobufField = readonly [number, number | Buffer]

/** Reads a protobuf message with the wire types that dnstap has. */
export function readProtobuf(octets: Buffer): ProtobufField[] {
  const fields: ProtobufField[] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const octet = octets[at++]!
      value += (octet & 0x7f) * scale
      if (octet < 0x80) return value
    }
  }
  while (at < octets.length) {
    const tag = varint()
    if ((tag & 7) === 0) fields.push([tag >> 3, varint()])
    else if ((tag & 7) === 5) fields.push([tag >> 3, octets.readUInt32LE((at += 4) - 4)])
    else if ((tag & 7) === 2) {
      const length = varint()
      fields.push([tag >> 3, octets.subarray(at, (at += length))])
    } else throw new Error(`wire type ${tag & 7}`)
  }
  return fields
}

export interface SinkBehaviour {
  readonly tls?: { readonly key: string; readonly cert: string }
  /** The content type that it accepts. */
  readonly accepts?: string
  /** What it replies to READY in place of ACCEPT. */
  readonly reply?: Buffer
  /** It reads nothing after the handshake. */
  readonly isStuck?: boolean
}

/** A dnstap sink, written apart from the code under test. */
export class SinkDouble {
  /** Kinds of control frames, as they arrived. */
  readonly controls: number[] = []
  readonly frames: Buffer[] = []
  readonly sockets: Socket[] = []
  /** Connections that have ended. */
  closed = 0
  readonly #server: Server
  readonly #behaviour: SinkBehaviour

  constructor(t: Test, behaviour: SinkBehaviour = {}) {
    this.#behaviour = behaviour
    const { tls } = behaviour
    const serve = (socket: Socket): void => this.#serve(socket)
    this.#server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve)
    t.teardown(() => this.close())
  }

  /** Resolves to the port, if it listens on one. */
  listen(path?: string): Promise<number> {
    return new Promise((resolve, reject) => {
      const done = (): void => {
        const address = this.#server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : 0)
      }
      this.#server.once('error', reject)
      if (path === undefined) this.#server.listen(0, '127.0.0.1', done)
      else this.#server.listen(path, done)
    })
  }

  /** Connects to a server that listens for sinks. */
  connect(to: NetConnectOpts, tls?: ConnectionOptions): void {
    this.#serve(tls === undefined ? connect(to) : connectTls({ ...to, ...tls }))
  }

  close(): void {
    this.#server.close()
    for (const socket of this.sockets) socket.destroy()
  }

  /** Fields of `Dnstap`, and of its message, of each frame. */
  messages(): { outer: Map<number, number | Buffer>; inner: Map<number, number | Buffer> }[] {
    return this.frames.map((frame) => {
      const outer = new Map(readProtobuf(frame))
      return { outer, inner: new Map(readProtobuf(outer.get(14) as Buffer)) }
    })
  }

  #serve(socket: Socket): void {
    this.sockets.push(socket)
    let rest = Buffer.alloc(0)
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed++
    })
    socket.on('data', (octets) => {
      rest = Buffer.concat([rest, octets])
      for (;;) {
        if (rest.length < 8) return
        const length = rest.readUInt32BE(0)
        const isControl = length === 0
        const from = isControl ? 8 : 4
        const end = from + (isControl ? rest.readUInt32BE(4) : length)
        if (rest.length < end) return
        const body = rest.subarray(from, end)
        rest = rest.subarray(end)
        if (isControl) this.#control(socket, body)
        else this.frames.push(Buffer.from(body))
      }
    })
  }

  #control(socket: Socket, body: Buffer): void {
    const kind = body.readUInt32BE(0)
    this.controls.push(kind)
    if (kind === 4) socket.write(this.#behaviour.reply ?? control(1, this.#behaviour.accepts))
    if (kind === 2 && this.#behaviour.isStuck === true) socket.pause()
    if (kind === 3) socket.write(control(5, ''))
  }
}

/** `type` '' = no content type. */
export function control(kind: number, type: string = CONTENT_TYPE): Buffer {
  const numbers = (...values: number[]) => {
    const out = Buffer.alloc(values.length * 4)
    for (const [i, value] of values.entries()) out.writeUInt32BE(value, i * 4)
    return out
  }
  const field = type === '' ? [] : [numbers(1, type.length), Buffer.from(type)]
  const body = Buffer.concat([numbers(kind), ...field])
  return Buffer.concat([numbers(0, body.length), body])
}
