/*
 * Asks servers for A records at a constant rate: `load-client.mjs NAMES SERVER...`, NAMES separated by commas, SERVER as
 * `address:port:queries-per-second:attempts`. At SIGTERM it stops, waits for the last answers, and prints a JSON object
 * per SERVER: queries sent, how many it `repeated`, `failures` as text, how many failed by `reasons`, when those were sent,
 * and when each address was last given (milliseconds since the epoch). With two attempts it repeats a query after REPEAT_MS.
 * A query without an answer after LOAD_TIMEOUT_MS has failed, and so has an answer without an address.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { addressesOf } from './reply-addresses.mjs'

/** As a stub resolver: musl has this time for two attempts. */
const STUB_TIMEOUT_MS = 5000
const TIMEOUT_MS = Number(process.env.LOAD_TIMEOUT_MS ?? STUB_TIMEOUT_MS)
const REPEAT_MS = STUB_TIMEOUT_MS / 2
const TICK_MS = 10
const FAILURES_MAX = 10

const [list, ...servers] = process.argv.slice(2)
const questions = list.split(',').map((name) => {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Buffer.from([...labels, 0, 0, 1, 0, 1])
})

class Load {
  /** By id: its packet, and when it was sent first. */
  #waiting = new Map()
  #socket
  #nextId = 0
  #perSecond
  #attempts
  #startMs = Date.now()
  result = { sent: 0, repeated: 0, failed: 0, failures: [], reasons: {}, failedMs: [], lastMs: {} }

  constructor(server) {
    const [, address, port, perSecond, attempts] = /^(.+):(\d+):(\d+):(\d+)$/.exec(server)
    const type = address.includes(':') ? 'udp6' : 'udp4'
    this.#socket = createSocket({ type, recvBufferSize: 1 << 20 })
    this.#perSecond = Number(perSecond)
    this.#attempts = Number(attempts)
    this.#socket.on('message', (reply) => this.#read(reply))
    this.#socket.on('error', (error) => this.#fail(error.message))
    this.#socket.connect(Number(port), address)
  }

  get isWaiting() {
    this.#expire()
    return this.#waiting.size > 0
  }

  async open() {
    await once(this.#socket, 'connect')
    this.#startMs = Date.now()
  }

  /** Sends what is due. */
  send() {
    this.#expire()
    const due = Math.floor(((Date.now() - this.#startMs) / 1000) * this.#perSecond)
    while (this.result.sent < due) {
      const id = this.#nextId++ & 0xffff
      const header = [id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]
      const question = questions[this.result.sent++ % questions.length]
      const packet = Buffer.concat([Buffer.from(header), question])
      this.#waiting.set(id, { packet, sentMs: Date.now(), attempts: 1 })
      this.#socket.send(packet)
    }
  }

  #read(reply) {
    const id = reply.readUInt16BE(0)
    const query = this.#waiting.get(id)
    if (query === undefined) return
    this.#waiting.delete(id)
    const rcode = reply[3] & 15
    const found = addressesOf(reply)
    if (rcode !== 0 || found.length === 0) {
      this.#fail(`rcode ${rcode}, ${found.length} addresses`, query.sentMs)
    }
    for (const address of found) this.result.lastMs[address] = Date.now()
  }

  #expire() {
    const nowMs = Date.now()
    for (const [id, query] of this.#waiting) {
      const waitedMs = nowMs - query.sentMs
      if (waitedMs < REPEAT_MS) break
      if (waitedMs >= TIMEOUT_MS) {
        this.#waiting.delete(id)
        this.#fail('timeout', query.sentMs)
      } else if (query.attempts < this.#attempts) {
        query.attempts++
        this.result.repeated++
        this.#socket.send(query.packet)
      }
    }
  }

  #fail(reason, sentMs = Date.now()) {
    const { result } = this
    result.reasons[reason] = (result.reasons[reason] ?? 0) + 1
    result.failedMs.push(sentMs)
    if (result.failed++ < FAILURES_MAX)
      result.failures.push(`${new Date().toISOString()} ${reason}`)
  }
}

const loads = servers.map((server) => new Load(server))
await Promise.all(loads.map((load) => load.open()))
let isStopped = false
process.on('SIGTERM', () => {
  isStopped = true
})
console.error('ready')
const timer = setInterval(() => {
  if (!isStopped) for (const load of loads) load.send()
  else if (!loads.some((load) => load.isWaiting)) {
    clearInterval(timer)
    console.log(JSON.stringify(loads.map(({ result }) => result)))
    process.exit()
  }
}, TICK_MS)
