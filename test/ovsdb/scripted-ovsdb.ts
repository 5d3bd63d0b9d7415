import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A request of a client. */
export interface OvsdbRequest {
  readonly method: string
  readonly params: readonly unknown[]
  readonly id: unknown
}

/** What is sent back: the result of the request, or octets in place of a reply; undefined = nothing. */
export type OvsdbAnswer = { readonly result: unknown } | { readonly octets: string } | undefined

/** An OVSDB server on 127.0.0.1 that sends any octets. It reads requests as this project writes them. */
export class ScriptedOvsdb {
  readonly requests: OvsdbRequest[] = []
  readonly sockets = new Set<Socket>()
  answer: (request: OvsdbRequest) => OvsdbAnswer
  connections = 0
  readonly #server: Server

  private constructor(server: Server, answer: (request: OvsdbRequest) => OvsdbAnswer) {
    this.#server = server
    this.answer = answer
  }

  static async open(
    t: Test,
    answer: (request: OvsdbRequest) => OvsdbAnswer = healthy,
  ): Promise<ScriptedOvsdb> {
    const server = createServer()
    const scripted = new ScriptedOvsdb(server, answer)
    server.on('connection', (socket) => scripted.#serve(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(async () => {
      for (const socket of scripted.sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    })
    return scripted
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Sends octets to all clients. */
  send(octets: string): void {
    for (const socket of this.sockets) socket.write(octets)
  }

  #serve(socket: Socket): void {
    this.connections++
    this.sockets.add(socket)
    socket.on('close', () => this.sockets.delete(socket)).on('error', () => {})
    let text = ''
    socket.on('data', (chunk) => {
      text += String(chunk)
      // Requests follow each other without anything between them.
      for (let end = text.indexOf('}{'); text !== ''; end = text.indexOf('}{')) {
        const one = end === -1 ? text : text.slice(0, end + 1)
        let request: OvsdbRequest
        try {
          request = JSON.parse(one)
        } catch {
          return
        }
        text = text.slice(one.length)
        this.#reply(socket, request)
      }
    })
  }

  #reply(socket: Socket, request: OvsdbRequest): void {
    this.requests.push(request)
    const answer = this.answer(request)
    if (answer === undefined) return
    const { id } = request
    if ('octets' in answer) socket.write(answer.octets)
    else socket.write(JSON.stringify({ result: answer.result, error: null, id }))
  }
}

/** Answers as a server with an empty database. */
export function healthy({ method, params }: OvsdbRequest): OvsdbAnswer {
  if (method === 'list_dbs') return { result: ['OVN_Northbound'] }
  if (method === 'echo') return { result: params }
  if (method === 'transact') return { result: params.slice(1).map(() => ({ count: 1 })) }
  return { result: {} }
}
