import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { writeKey } from '../plugins/dnssec/stage.ts'
import { ask } from '../support/dig.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { wireQuery } from '../support/wire.ts'

// Long: it floods a server for seconds.

/* Queries with DO for random names, which each need a signature: the limit bounds the processor time, the cache the memory. */

const SECONDS = 4
const THREADS = 2
const PER_NETWORK = 50
const TOTAL = 200
/** Networks of 127.0.0.0/8 that take part, each with one address. */
const NETWORKS = 20
/** Growth of V8's heaps with the traffic, not with the names: see flood.test.ts. */
const GROWTH_MIB_MAX = 128

function residentMib({ process: { pid } }: RunningServer): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1])
  return (pages * 4096) / 2 ** 20
}

/** Sends queries for random names from several networks; returns how many replies were signed and truncated. */
async function flood(t: Test, port: number): Promise<{ replies: number; truncated: number }> {
  const sockets = Array.from({ length: NETWORKS }, (_, i) => {
    const socket = createSocket('udp4')
    socket.bind(0, `127.0.${i + 1}.1`)
    t.teardown(() => socket.close())
    return socket
  })
  let replies = 0
  let truncated = 0
  for (const socket of sockets) {
    socket.on('message', (reply) => {
      replies++
      if ((reply[2]! & 2) !== 0) truncated++
    })
  }
  const endMs = performance.now() + SECONDS * 1000
  for (let i = 0; performance.now() < endMs; ) {
    for (const socket of sockets) {
      const name = `x${i++}.k.example`
      socket.send(wireQuery({ name, edns: { flags: 0x8000 } }), port, '127.0.0.1')
    }
    await turn()
  }
  return { replies, truncated }
}

t.test('a flood of queries for random names', needs('dig'), async (t) => {
  const { path } = await writeKey(join(temporaryDirectory(t), 'keys'), 'k.example.')
  const metrics = await freePort()
  const server = await startServer(t, {
    corefile: `k.example:{PORT} {
  bind 127.0.0.1
  multisocket ${THREADS}
  prometheus 127.0.0.1:${metrics}
  dnssec {
    key file ${path}
    cache_capacity 1000
    signatures_per_second ${TOTAL} ${PER_NETWORK}
  }
  hosts {
    192.0.2.1 www.k.example
  }
  template IN ANY k.example {
    match ^(x[0-9]+|new)\\.
    fallthrough
    rcode NXDOMAIN
  }
}
`,
  })
  const { port } = server
  const before = await ask('dig', port, ['+dnssec', 'www.k.example', 'A'])
  t.equal(before.answer.length, 2, 'an A record and its signature')
  const residentBefore = residentMib(server)
  const { replies, truncated } = await flood(t, port)
  const { text: page } = await getText(`http://127.0.0.1:${metrics}/metrics`)
  const counter = (name: string): number => {
    const lines = page.split('\n').filter((line) => line.startsWith(`${name}{`))
    return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  const made = counter('sextant_dnssec_signatures_total')
  const refused = counter('sextant_dnssec_refused_total')
  t.comment(`${replies} replies, ${truncated} truncated; ${made} signatures, ${refused} refused`)
  t.comment(`RSS ${residentBefore.toFixed(0)}, then ${residentMib(server).toFixed(0)} MiB`)
  t.ok(replies > TOTAL * SECONDS * 4, 'the flood is one')
  // One more second: what may be made at once. And those of SOA, www and each thread.
  t.ok(made <= TOTAL * (SECONDS + 2) + 10 * THREADS, `${made} signatures`)
  t.ok(made >= TOTAL, 'some names are signed')
  t.ok(truncated >= replies - made - 1, 'all other replies are truncated')
  t.ok(counter('coredns_dnssec_cache_entries') <= 1000 * THREADS, 'the cache is bounded')
  t.ok(residentMib(server) - residentBefore < GROWTH_MIB_MAX, 'memory')

  const cached = await ask('dig', port, ['+dnssec', '+ignore', 'www.k.example', 'A'])
  t.equal(cached.answer.length, 2, 'names that are asked for again have their signatures')
  const tcp = await ask('dig', port, ['+dnssec', '+tcp', 'new.k.example', 'A'])
  t.match(tcp.authority.join('\n'), / RRSIG NSEC /, 'a new name over TCP')
})
