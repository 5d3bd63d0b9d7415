/*
 * Asks servers for A records at a constant rate: `load-client.mjs NAMES SERVER...`, NAMES separated by commas, SERVER as
 * `address:port:queries-per-second`. At SIGTERM it stops, waits for the last answers, and prints a JSON object per SERVER:
 * queries sent, `failures` as text, and when each address was last given (milliseconds since the epoch). A query without
 * an answer after TIMEOUT_MS has failed, and so has an answer without an address.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { addressesOf } from './reply-addresses.mjs'

/** As of a stub resolver, which would then ask another resolver (resolv.conf). */
const TIMEOUT_MS = 5000
const TICK_MS = 10
const FAILURES_MAX = 10

const [list, ...servers] = process.argv.slice(2)
const questions = list.split(',').map((name) => {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Buffer.from([...labels, 0, 0, 1, 0, 1])
})

class Load {
  /** By id: when it was sent. */
  #waiting = new Map()
  #socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
  #nextId = 0
  #perSecond
  #startMs = Date.now()
  result = { sent: 0, failed: 0, failures: [], lastMs: {} }

  constructor(server) {
    const [address, port, perSecond] = server.split(':')
    this.#perSecond = Number(perSecond)
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
      this.#waiting.set(id, Date.now())
      this.#socket.send(Buffer.concat([Buffer.from(header), question]))
    }
  }

  #read(reply) {
    const isAsked = this.#waiting.delete(reply.readUInt16BE(0))
    if (!isAsked) return
    const rcode = reply[3] & 15
    const found = addressesOf(reply)
    if (rcode !== 0 || found.length === 0) this.#fail(`rcode ${rcode}, ${found.length} addresses`)
    for (const address of found) this.result.lastMs[address] = Date.now()
  }

  #expire() {
    const sinceMs = Date.now() - TIMEOUT_MS
    for (const [id, sentMs] of this.#waiting) {
      if (sentMs > sinceMs) break
      this.#waiting.delete(id)
      this.#fail('timeout')
    }
  }

  #fail(reason) {
    const { result } = this
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
