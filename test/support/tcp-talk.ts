import { connect, type Socket } from 'node:net'

/** How a client talks over TCP, one question after the other. */
export interface Manner {
  readonly query: Uint8Array
  /** Longest pause between an answer and the next question; how long is drawn. */
  readonly pauseMs: number
  /** True: ends a connection once the server asks for it (edns-tcp-keepalive with a timeout of 0). */
  readonly obeysKeepalive: boolean
  /** Questions over one connection, which the client then ends; default: no limit. */
  readonly questions?: number
}

/** An edns-tcp-keepalive option with a timeout of 0 (RFC 7828), as it ends a reply. */
const LEAVE = Buffer.of(0, 11, 0, 2, 0, 0)

/** A client that keeps its connection as long as the server does, and then opens another. */
export class TcpTalk {
  answered = 0
  /** Questions that were written and not answered. */
  lost = 0
  /** Connections that the server ended, and those that the client ended since the server asked for it. */
  ended = 0
  left = 0
  readonly #port: number
  readonly #manner: Manner
  #isOver = false
  readonly #done: Promise<void>

  constructor(port: number, manner: Manner) {
    this.#port = port
    this.#manner = manner
    this.#done = this.#run()
  }

  /** Asks no more, and waits for the last answer. */
  async stop(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #run(): Promise<void> {
    while (!this.#isOver) await this.#talk()
  }

  #talk(): Promise<void> {
    return new Promise((resolve) => {
      const { query, pauseMs, obeysKeepalive, questions = Number.POSITIVE_INFINITY } = this.#manner
      const socket: Socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
      const frame = Buffer.concat([Buffer.of(query.length >> 8, query.length & 0xff), query])
      let got = Buffer.alloc(0)
      let waits = false
      let left = questions
      const ask = (): void => {
        if (socket.destroyed || socket.readableEnded) return
        if (this.#isOver || left-- === 0) {
          socket.destroy()
          return
        }
        waits = true
        socket.write(frame)
      }
      socket.on('connect', ask)
      socket.on('data', (chunk) => {
        got = Buffer.concat([got, chunk])
        if (got.length < 2 || got.length < 2 + got.readUInt16BE(0)) return
        const reply = got.subarray(2)
        got = Buffer.alloc(0)
        waits = false
        this.answered++
        if (obeysKeepalive && reply.subarray(-LEAVE.length).equals(LEAVE)) {
          this.left++
          socket.destroy()
        } else if (pauseMs === 0) ask()
        else setTimeout(ask, Math.random() * pauseMs)
      })
      socket.on('error', () => {})
      socket.on('end', () => {
        this.ended++
        socket.destroy()
      })
      socket.on('close', () => {
        if (waits) this.lost++
        resolve()
      })
    })
  }
}
