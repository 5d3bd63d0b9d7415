import { createSocket } from 'node:dgram'
import { get } from 'node:http'
import { connect } from 'node:net'
import { framed, query } from './query.mjs'

const [DNS_MS, HEALTH_MS, TIMEOUT_MS] = [150, 250, 3000]
const ADDRESS = '127.200.1.1'

/** Honest clients of the server, and what they lost. */
export class HonestClients {
  #ports
  #timers = []
  #counts = { UDP: [0, 0], TCP: [0, 0], health: [0, 0] }
  #open = new Set()

  constructor(ports) {
    this.#ports = ports
  }

  /** Waits until the server answers. */
  async ready() {
    for (let i = 0; !(await this.#tcp()); i++) {
      if (i > 300) throw new Error('the server does not answer')
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  start() {
    const repeat = (what, ms, ask) => {
      this.#timers.push(setInterval(() => this.#count(what, ask), ms))
    }
    repeat('UDP', DNS_MS, () => this.#udp())
    repeat('TCP', DNS_MS, () => this.#tcp())
    repeat('health', HEALTH_MS, () => this.#health())
  }

  async stop() {
    for (const timer of this.#timers) clearInterval(timer)
    await Promise.all(this.#open)
  }

  print() {
    const parts = Object.entries(this.#counts).map(
      ([what, [all, lost]]) => `${what} ${lost} of ${all}`,
    )
    return parts.join(', ')
  }

  async #count(what, ask) {
    const asked = ask()
    this.#open.add(asked)
    const isAnswered = await asked
    this.#open.delete(asked)
    const counts = this.#counts[what]
    counts[0]++
    if (!isAnswered) counts[1]++
  }

  #udp() {
    return new Promise((resolve) => {
      const socket = createSocket('udp4')
      const end = (isAnswered) => {
        clearTimeout(timer)
        socket.close()
        resolve(isAnswered)
      }
      const timer = setTimeout(() => end(false), TIMEOUT_MS)
      socket.on('error', () => end(false))
      socket.once('message', () => end(true))
      socket.bind(0, ADDRESS, () =>
        socket.send(query('h1.example.org', 1), this.#ports.dns, '127.0.0.1'),
      )
    })
  }

  #tcp() {
    return new Promise((resolve) => {
      const socket = connect({ port: this.#ports.dns, host: '127.0.0.1', localAddress: ADDRESS })
      const end = (isAnswered) => {
        clearTimeout(timer)
        socket.destroy()
        resolve(isAnswered)
      }
      const timer = setTimeout(() => end(false), TIMEOUT_MS)
      socket.on('error', () => end(false))
      socket.on('close', () => end(false))
      socket.once('data', () => end(true))
      socket.write(framed(query('h2.example.org', 1)))
    })
  }

  #health() {
    return new Promise((resolve) => {
      const options = {
        port: this.#ports.health,
        host: '127.0.0.1',
        path: '/health',
        localAddress: ADDRESS,
        agent: false,
        timeout: TIMEOUT_MS,
      }
      const request = get(options, (response) => {
        response.resume()
        response.on('end', () => resolve(response.statusCode === 200))
        response.on('error', () => resolve(false))
      })
      request.on('timeout', () => request.destroy())
      request.on('error', () => resolve(false))
    })
  }
}
