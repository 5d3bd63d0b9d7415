import { createSocket } from 'node:dgram'
import { readFileSync } from 'node:fs'
import { get } from 'node:http'
import { connect } from 'node:net'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { composeQuery } from '../support/client.ts'
import { freePort, putFile, type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { BurstClient } from './burst-client.ts'
import type { FloodData } from './flood-worker.ts'

// Long: it floods a server for tens of seconds.

/** `SEXTANT_FLOOD_SECONDS=60` for the long run. */
const SECONDS = Number(process.env.SEXTANT_FLOOD_SECONDS ?? 5)
/** Longest wait for an answer over TCP or HTTP meanwhile, on a machine that does other things too. */
const PATIENCE_MS = 20_000
/**
 * V8 lets the heaps grow by up to 81 MiB in 20 s, in which 2 million datagrams arrive, and by no more in 80 s. A leak of
 * 100 octets for each of them would be 200 MiB: the long run finds smaller leaks.
 */
const GROWTH_MIB_MAX = 128
t.setTimeout(SECONDS * 1000 + 900_000)

const record = (address: string): string =>
  JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'a', namespace: 'default' },
    spec: {
      rootHost: 'a.z.example',
      endpoints: [{ dnsName: 'a.z.example', recordType: 'A', targets: [address] }],
    },
  })
const QUERY = composeQuery({ name: 'a.z.example', type: 'A' }, 0)

/** The last four octets of the answer over a connection of its own: its address; '' = it failed. */
function askTcp(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const frame = Buffer.concat([Buffer.from([0, QUERY.length]), QUERY])
    let got = Buffer.alloc(0)
    socket.on('connect', () => socket.write(frame))
    socket.on('data', (chunk) => {
      got = Buffer.concat([got, chunk])
      if (got.length < 2 || got.length < 2 + got.readUInt16BE(0)) return
      // Before the OPT record of 11 octets.
      resolve([...got.subarray(got.length - 15, got.length - 11)].join('.'))
      socket.destroy()
    })
    socket.on('close', () => resolve(''))
    socket.on('error', () => resolve(''))
  })
}

function fetchMetrics(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path: '/metrics', agent: false }, (response) => {
      let body = ''
      response.on('data', (chunk) => (body += chunk))
      response.on('end', () => resolve(body))
    })
    request.on('error', reject)
  })
}

function residentMib({ process: { pid } }: RunningServer): number {
  const pages = Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1])
  return (pages * 4096) / 2 ** 20
}

/** Octets that wait in the UDP sockets bound to `port` (proc_net_udp: address:port, then the queues, all in hex). */
function queuedOctets(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = readFileSync('/proc/net/udp', 'latin1').split('\n')
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, address]) => address?.endsWith(local))
    .reduce((sum, row) => sum + Number.parseInt(row[4]!.split(':')[1]!, 16), 0)
}

/** The highest of the first `part` of the samples. */
const highest = (samples: readonly number[], part: number): number =>
  Math.max(...samples.slice(0, Math.ceil(samples.length * part)))

/** How long each of a series of acts took. */
class Times {
  readonly #ms: number[] = []

  async take<T>(act: Promise<T>): Promise<T> {
    const startMs = performance.now()
    const result = await act
    this.#ms.push(performance.now() - startMs)
    return result
  }

  get max(): number {
    return Math.max(...this.#ms)
  }

  print(): string {
    const sorted = this.#ms.toSorted((a, b) => a - b)
    const at = (share: number): string =>
      sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1)
    return `${sorted.length}, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`
  }
}

t.test(`random octets over UDP for ${SECONDS} s`, async (t) => {
  const metrics = await freePort()
  const server = await startServer(t, {
    corefile: `z.example:{PORT} {
      bind 127.0.0.1
      errors
      log
      multisocket 2
      prometheus 127.0.0.1:${metrics}
      kuadrant {
        manifests records
        nameserver ns1.z.example. 192.0.2.53
      }
    }\n`,
    files: { 'records/a.json': record('192.0.2.1') },
  })
  const { port } = server
  const state = new Int32Array(new SharedArrayBuffer(8))
  const workerData: FloodData = { port, seconds: SECONDS, seed: 1, query: QUERY, state }
  const flood = new Worker(new URL('./flood-worker.ts', import.meta.url), { workerData })
  let isOver = false
  const ended = new Promise<void>((resolve, reject) => {
    flood.on('error', reject)
    flood.on('exit', () => {
      isOver = true
      resolve()
    })
  })
  t.teardown(() => Atomics.store(state, 0, 1))
  const isUnderWay = () => Atomics.load(state, 1) > 5000 || isOver
  await until(isUnderWay, 'the flood')

  const long = createSocket('udp4')
  const tooLong = Buffer.alloc(5000, QUERY)
  const before = residentMib(server)
  const resident: number[] = []
  const tcp = new Times()
  const http = new Times()
  for (let i = 1; !isOver || i < 20; i++) {
    const address = `192.0.2.${(i >> 3) & 127}`
    // Eight questions to each version of the manifest, which is seen in time as well.
    if (i % 8 === 0) {
      putFile(server.directory, 'records/a.json', record(address))
      const isSeen = async () => (await tcp.take(askTcp(port))) === address
      await until(isSeen, 'the change', PATIENCE_MS * 2)
    }
    t.match(await tcp.take(askTcp(port)), /^192\.0\.2\.\d+$/)
    long.send(tooLong, port, '127.0.0.1')
    if (i % 4 === 0) await http.take(fetchMetrics(metrics))
    resident.push(residentMib(server))
  }
  await ended
  long.close()
  const page = await fetchMetrics(metrics)
  const counted = page.split('\n').filter((line) => /^(sextant|coredns_panics)\w*_total/.test(line))
  t.comment([`${state[1]} datagrams`, `TCP: ${tcp.print()}`, `metrics: ${http.print()}`].join('\n'))
  const quarters = [0.25, 0.5, 0.75, 1].map((part) => highest(resident, part).toFixed(0))
  t.comment([`RSS ${before.toFixed(0)}; by quarters ${quarters} MiB`, ...counted].join('\n'))
  t.ok(tcp.max < PATIENCE_MS, 'TCP')
  t.ok(http.max < PATIENCE_MS, 'HTTP')
  t.ok(highest(resident, 1) - before < GROWTH_MIB_MAX, 'memory')
  t.match(page, /^coredns_panics_total 0$/m)
  t.match(page, /^sextant_dns_dropped_queries_total\{reason="overload"\} 0$/m)
  t.notMatch(server.output(), /\[(ERROR|WARNING)\]/)

  // What the flood left in the server's buffers would leave no room.
  await until(() => queuedOctets(port) === 0, 'the rest of the flood to be read')
  const client = new BurstClient({
    server: '127.0.0.1',
    local: '127.0.0.1',
    port,
    sockets: 16,
    window: 8,
    query: QUERY,
  })
  await client.run(20_000)
  client.close()
  t.equal(client.answered, 20_000, 'every query afterwards is answered')
  t.equal(client.bad, 0)
})
