import { Agent, type IncomingMessage, request } from 'node:http'
import { request as requestTls, Agent as TlsAgent } from 'node:https'
import type { Socket } from 'node:net'
import type { Timers } from '../../timers.ts'

/** Longest time until a collector has replied. */
const REPLY_MS = 5000
const REPLY_OCTETS_MAX = 64 * 1024

/** Sends bodies to one URL, one at a time, over a connection that is kept. Redirects are not followed. */
export class Poster {
  readonly #url: URL
  readonly #timers: Timers
  readonly #agent: Agent
  #socket: Socket | undefined
  #cancel = (_reason: string): void => {}
  #keepsProcess = false

  constructor(url: URL, timers: Timers) {
    this.#url = url
    this.#timers = timers
    const options = { keepAlive: true, maxSockets: 1 }
    this.#agent = url.protocol === 'https:' ? new TlsAgent(options) : new Agent(options)
  }

  /** Resolves to the status and the start of the body. Rejects if no reply came in time. */
  async post(contentType: string, body: string): Promise<{ status: number; text: string }> {
    const octets = Buffer.from(body)
    const headers = { 'Content-Type': contentType, 'Content-Length': octets.length }
    const options = { method: 'POST', headers, agent: this.#agent }
    const send = this.#url.protocol === 'https:' ? requestTls : request
    const sent = send(this.#url, options)
    sent.on('socket', (socket) => {
      this.#socket = socket
      if (!this.#keepsProcess) socket.unref()
    })
    const stopTimer = this.#timers.after(REPLY_MS, () => {
      this.#cancel(`no reply in ${REPLY_MS / 1000} s`)
    })
    try {
      return await new Promise((resolve, reject) => {
        this.#cancel = (reason) => {
          // A request whose socket is closed reports no error, as after status 101.
          reject(new Error(reason))
          sent.destroy()
        }
        sent.on('error', reject)
        sent.on('response', (response) => {
          readText(response).then(
            (text) => resolve({ status: response.statusCode ?? 0, text }),
            reject,
          )
        })
        sent.end(octets)
      })
    } finally {
      stopTimer()
      this.#cancel = () => {}
    }
  }

  /** From now on, the process does not end while a request is open. */
  keepProcess(): void {
    this.#keepsProcess = true
    this.#socket?.ref()
  }

  cancel(): void {
    this.#cancel('stopped')
  }

  close(): void {
    this.#agent.destroy()
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let octets = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    octets += chunk.length
    if (octets > REPLY_OCTETS_MAX) break
  }
  return Buffer.concat(chunks).toString()
}
