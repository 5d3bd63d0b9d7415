import type { Logger } from '../../base/telemetry/log.ts'
import {
  type AnswerNames,
  openSocket,
  type SocketServer,
} from '../../egress/agent/api/socket-server.ts'

/**
 * The socket of the API at one path. A reload with other options has two agents for a time: the newer one answers, and
 * if the reload fails, the older one again.
 */
export class ApiSocket {
  readonly #path: string
  readonly #log: Logger
  readonly #answers = new Set<AnswerNames>()
  #socket: SocketServer | undefined
  #opening: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(path: string, log: Logger) {
    this.#path = path
    this.#log = log
  }

  /** Has an agent answer. If the socket cannot be opened, that is logged. Resolves to what ends it. */
  async add(answer: AnswerNames): Promise<() => void> {
    this.#answers.add(answer)
    this.#opening = this.#opening.then(() => this.#open())
    await this.#opening
    return () => void this.#answers.delete(answer)
  }

  close(): void {
    this.#isClosed = true
    this.#socket?.close()
  }

  async #open(): Promise<void> {
    if (this.#socket !== undefined || this.#isClosed) return
    try {
      const socket = await openSocket(this.#path, (method, target) => {
        return [...this.#answers].at(-1)?.(method, target) ?? { status: 404 }
      })
      this.#socket = socket
      if (this.#isClosed) socket.close()
    } catch (error) {
      // Enforcement does not depend on it.
      this.#log.error(
        `no API: ${error instanceof Error ? error.message : error}`,
        'egress-api-failed',
      )
    }
  }
}
