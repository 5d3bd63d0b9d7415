import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** A client's end: whole messages out, whole messages in. */
export interface Client {
  readonly port: number
  readonly received: readonly Buffer[]
  send(message: Uint8Array): void
  close(): Promise<void>
}

/** `fd`: an open socket for the client, such as one of another network namespace. */
export async function udpClient(port: number, host = '127.0.0.1', fd?: number): Promise<Client> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  if (fd !== undefined) {
    const listening = once(socket, 'listening')
    socket.bind({ fd, exclusive: true })
    await listening
  }
  const received: Buffer[] = []
  let isOpen = true
  socket.on('message', (message) => received.push(message))
  socket.connect(port, host)
  await once(socket, 'connect')
  return {
    port: socket.address().port,
    received,
    send: (message) => socket.send(message),
    close: async () => {
      if (!isOpen) return
      isOpen = false
      const closed = once(socket, 'close')
      socket.close()
      await closed
    },
  }
}

export function frame(message: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message])
}

/** A TCP client that keeps what it gets, cut into messages. */
export class TcpClient implements Client {
  readonly socket: Socket
  readonly received: Buffer[] = []
  /** True once the server has ended its side or cut the connection. */
  ended = false
  closed = false
  #rest: Buffer = Buffer.alloc(0)

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('end', () => {
      this.ended = true
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      this.ended = true
      this.closed = true
    })
  }

  static async connect(
    port: number,
    host = '127.0.0.1',
    localAddress?: string,
  ): Promise<TcpClient> {
    const from = localAddress === undefined ? {} : { localAddress }
    const socket = connect({ port, host, ...from, allowHalfOpen: true, noDelay: true })
    const client = new TcpClient(socket)
    await once(socket, 'connect')
    return client
  }

  get port(): number {
    return this.socket.localPort ?? 0
  }

  send(message: Uint8Array): void {
    this.socket.write(frame(message))
  }

  async close(): Promise<void> {
    if (this.closed) return
    const closed = once(this.socket, 'close')
    this.socket.destroy()
    await closed
  }

  #read(chunk: Buffer): void {
    this.#rest = Buffer.concat([this.#rest, chunk])
    while (this.#rest.length >= 2) {
      const end = 2 + this.#rest.readUInt16BE(0)
      if (this.#rest.length < end) return
      this.received.push(this.#rest.subarray(2, end))
      this.#rest = this.#rest.subarray(end)
    }
  }
}
