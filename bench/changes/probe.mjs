// Asks each data thread of a server, until all of them answer with a new address.
import { createSocket } from 'node:dgram'
import { readdirSync, readFileSync } from 'node:fs'

/** The kernel spreads sockets over threads by their ports: of so many, each thread has some. */
const CANDIDATES = 24
const ASKS = 100
const PER_THREAD = 2
const PATIENCE_MS = 5000

function composeQuery(id, name) {
  const labels = name.split('.').flatMap((label) => [label.length, ...Buffer.from(label)])
  return Uint8Array.from([
    id >> 8,
    id & 255,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    ...labels,
    0,
    0,
    1,
    0,
    1,
  ])
}

/** One socket, one query at a time. */
class Client {
  #socket = createSocket('udp4')
  #resolve = () => {}
  #id = 0

  static async connect(port) {
    const client = new Client()
    client.#socket.on('message', (reply) => {
      if (reply.readUInt16BE(0) === client.#id) client.#resolve(reply)
    })
    await new Promise((resolve) => client.#socket.connect(port, '127.0.0.1', resolve))
    return client
  }

  /** Resolves with the address that the answer ends with: there is one, and nothing behind it. */
  async ask(name) {
    this.#id = (this.#id + 1) & 0xffff
    const query = composeQuery(this.#id, name)
    const reply = await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer for ${name}`)), PATIENCE_MS)
      this.#resolve = (reply) => {
        clearTimeout(timer)
        resolve(reply)
      }
      this.#socket.send(query)
    })
    return reply.subarray(-4).join('.')
  }

  close() {
    this.#socket.close()
  }
}

/** How often each thread has gone to sleep. */
function sleeps(pid) {
  const tasks = `/proc/${pid}/task`
  return readdirSync(tasks).map((tid) => {
    const status = readFileSync(`${tasks}/${tid}/status`, 'utf8')
    return { tid, count: Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)[1]) }
  })
}

/** Which thread works while the client asks: it sleeps before most queries. */
async function threadOf(client, pid, name) {
  const before = new Map(sleeps(pid).map(({ tid, count }) => [tid, count]))
  for (let i = 0; i < ASKS; i++) await client.ask(name)
  const slept = sleeps(pid).map(({ tid, count }) => ({ tid, times: count - before.get(tid) }))
  return slept.sort((a, b) => b.times - a.times)[0].tid
}

/** Clients of every data thread. Throws where there are not `threads` of them. */
export async function connectToAll({ port, pid, threads, name }) {
  const byThread = new Map()
  for (let i = 0; i < CANDIDATES; i++) {
    const client = await Client.connect(port)
    const tid = await threadOf(client, pid, name)
    const clients = byThread.get(tid) ?? []
    byThread.set(tid, clients)
    if (clients.length < PER_THREAD) clients.push(client)
    else client.close()
    const all = [...byThread.values()]
    if (all.length === threads && all.every((some) => some.length === PER_THREAD)) break
  }
  if (byThread.size !== threads) {
    throw new Error(`${byThread.size} threads answer, not ${threads}`)
  }
  return [...byThread.values()].flat()
}

/** Resolves with the time (`performance.now`) at which the last client got `address` for `name`. */
export async function untilVisible(clients, name, address) {
  const giveUpMs = performance.now() + PATIENCE_MS
  const seen = clients.map(async (client) => {
    while ((await client.ask(name)) !== address) {
      if (performance.now() > giveUpMs) throw new Error(`${name} did not become ${address}`)
    }
    return performance.now()
  })
  return Math.max(...(await Promise.all(seen)))
}
