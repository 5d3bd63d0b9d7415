import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { createRequire } from 'node:module'
import { connect, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Test } from 'tap'
import { selfSigned } from '../support/certificate.ts'

/** The part of the package ws that is used. It belongs to @kubernetes/client-node. */
interface WebSocket {
  send(octets: Buffer): void
  close(): void
  on(event: 'message', take: (octets: Buffer) => void): void
  on(event: 'close', run: () => void): void
}
interface Library {
  readonly WebSocketServer: new (
    options: object,
  ) => {
    handleUpgrade(
      request: IncomingMessage,
      socket: Duplex,
      head: Buffer,
      take: (socket: WebSocket) => void,
    ): void
  }
}

const PROTOCOL = 'v4.channel.k8s.io'
/** Channels of the first port. */
const DATA = 0
const ERROR = 1

/** Which Pods have a server on the port. */
interface Pods {
  readonly connects: (pod: string) => boolean
}

/** A kubelet that does nothing but forward ports to this host, over WebSockets. Returns its port. */
export async function startForwardingKubelet(t: Test, { connects }: Pods): Promise<number> {
  const { WebSocketServer }: Library = createRequire(import.meta.url)('ws')
  const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => PROTOCOL })
  const server = createServer(selfSigned('localhost'))
  const open = new Set<Duplex>()
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    open.add(socket)
    const { pathname, searchParams } = new URL(request.url ?? '', 'https://localhost')
    const pod = pathname.split('/')[3] ?? ''
    const port = Number(searchParams.get('port') ?? searchParams.get('ports'))
    sockets.handleUpgrade(request, socket, head, (tunnel) => forward(tunnel, port, connects(pod)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function forward(tunnel: WebSocket, port: number, connects: boolean): void {
  const send = (channel: number, octets: Buffer): void => {
    tunnel.send(Buffer.concat([Buffer.from([channel]), octets]))
  }
  // The first frame of each channel has the number of the port.
  const number = Buffer.from([port & 0xff, port >> 8])
  send(DATA, number)
  send(ERROR, number)
  if (!connects) {
    send(ERROR, Buffer.from(`dial tcp4 127.0.0.1:${port}: connect: connection refused`))
    return
  }
  const socket: Socket = connect(port, '127.0.0.1')
  socket.on('error', (error) => send(ERROR, Buffer.from(error.message)))
  socket.on('data', (octets) => send(DATA, octets))
  socket.on('close', () => tunnel.close())
  tunnel.on('message', (octets) => {
    if (octets[0] === DATA) socket.write(octets.subarray(1))
  })
  tunnel.on('close', () => socket.destroy())
}
