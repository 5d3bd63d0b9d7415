import { connect, type Socket } from 'node:net'

/** How a client talks over TCP, one question after the other. */
export interface Manner {
  readonly query: Uint8Array
  /** Longest pause between an answer and the next question; how long is drawn. */
  readonly pauseMs: number
  /** Questions without an answer that it sends one after the other; default: 1. */
  readonly window?: number
}

/** A client that keeps its connection as long as the server does, and then opens another. */
export class TcpTalk {
  answered = 0
  /** Questions that were written and not answered. */
  lost = 0
  /** Connections that it has opened. */
  connections = 0
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
    this.connections++
    return new Promise((resolve) => {
      const { query, pauseMs, window = 1 } = this.#manner
      const socket: Socket = connect({ port: this.#port, host: '127.0.0.1', noDelay: true })
      const frame = Buffer.concat([Buffer.of(query.length >> 8, query.length & 0xff), query])
      let got = Buffer.alloc(0)
      let waiting = 0
      const ask = (): void => {
        if (socket.destroyed || socket.readableEnded) return
        if (!this.#isOver) {
          waiting++
          socket.write(frame)
        } else if (waiting === 0) socket.destroy()
      }
      const answer = (): void => {
        waiting--
        this.answered++
        if (pauseMs === 0) ask()
        else setTimeout(ask, Math.random() * pauseMs)
      }
      socket.on('connect', () => {
        for (let i = 0; i < window; i++) ask()
      })
      socket.on('data', (chunk) => {
        got = Buffer.concat([got, chunk])
        while (got.length >= 2 && got.length >= 2 + got.readUInt16BE(0)) {
          got = got.subarray(2 + got.readUInt16BE(0))
          answer()
        }
      })
      socket.on('error', () => {})
      socket.on('end', () => socket.destroy())
      socket.on('close', () => {
        this.lost += waiting
        resolve()
      })
    })
  }
}
