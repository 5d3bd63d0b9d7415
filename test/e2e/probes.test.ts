import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { composeQuery, UdpClient } from '../support/client.ts'
import { getText } from '../support/get-text.ts'
import { readReply } from '../support/read-reply.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { SlowStartShare } from '../support/slow-start-share.ts'
import { until } from '../support/until.ts'

// Long: it waits for addresses to go and to come back.

const HOST = 'app.k.example.com'
const QUESTION = { name: HOST, type: 'A' }
const RAMP_UP_MS = 3000

function corefile(metricsPort: number, readyPort: number): string {
  return `k.example.com:{PORT} {
    bind 127.0.0.1
    errors
    prometheus 127.0.0.1:${metricsPort}
    ready 127.0.0.1:${readyPort}
    kuadrant {
        manifests zones
        probe probes
        probe-allow 127.0.0.0/8
        slow-start ${RAMP_UP_MS / 1000}s
    }
}
`
}

function manifest(port: number): string {
  const endpoint = (last: number) => `  - dnsName: ${HOST}
    recordType: A
    setIdentifier: "${last}"
    targets: [127.0.0.${last}]
    providerSpecific: [{name: weight, value: "100"}]
`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app}
spec:
  rootHost: ${HOST}
  healthCheck: {protocol: HTTP, port: ${port}, path: /healthz, interval: 3s, failureThreshold: 1}
  endpoints:
${endpoint(2)}${endpoint(3)}`
}

/** A gateway on 127.0.0.`last` that can be stopped and started. */
class Gateway {
  readonly #last: number
  #server: Server | undefined
  port = 0
  hosts = new Set<string | undefined>()

  constructor(last: number) {
    this.#last = last
  }

  async start(port: number): Promise<void> {
    this.#server = createServer(({ headers }, response) => {
      this.hosts.add(headers.host)
      response.end('ok')
    }).listen(port, `127.0.0.${this.#last}`)
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
  }

  async stop(): Promise<void> {
    this.#server?.closeAllConnections()
    await new Promise((done) => this.#server?.close(done))
  }
}

/** How often each last octet comes in so many answers. */
async function draw(server: RunningServer, count: number): Promise<Map<number, number>> {
  const client = await UdpClient.connect(server.port)
  const seen = new Map<number, number>()
  for (let i = 0; i < count; i++) {
    const reply = readReply(await client.ask(QUESTION), composeQuery(QUESTION, 0))
    if (typeof reply === 'string') throw new Error(reply)
    for (const address of reply.addresses) seen.set(address[3]!, (seen.get(address[3]!) ?? 0) + 1)
  }
  client.close()
  return seen
}

t.test('two gateways behind one name', async (t) => {
  const one = new Gateway(2)
  const two = new Gateway(3)
  const port = await freePort()
  await one.start(port)
  await two.start(port)
  t.teardown(() => Promise.all([one.stop(), two.stop()]))
  const metricsPort = await freePort()
  const readyPort = await freePort()
  const files = { 'zones/app.yaml': manifest(port) }
  let server = await startServer(t, { corefile: corefile(metricsPort, readyPort), files })
  const served = async () => [...(await draw(server, 40)).keys()].sort().join()
  const becomes = (want: string) => until(async () => (await served()) === want, want)
  const shows = (path: string, what: RegExp, at = metricsPort) =>
    until(async () => {
      const { text } = await getText(`http://127.0.0.1:${at}${path}`)
      return what.test(text)
    }, String(what))

  await t.test('both are up', async (t) => {
    t.equal(await served(), '2,3')
    await until(async () => one.hosts.size > 0 && two.hosts.size > 0, 'the first looks')
    t.strictSame([...one.hosts], [HOST])
    await shows('/metrics', /^sextant_probes\{source="[^"]*",state="up"\} 2$/m)
    await shows('/metrics', /^dns_health_probe_counter\{.*namespace="default".*\} 2$/m)
  })

  await t.test('one stops: its address is removed', async () => {
    await one.stop()
    await becomes('3')
    await server.prints(/127\.0\.0\.2 of default\/app is down after 2 failures: connection refused/)
    await shows('/ready', /down by probes: 127\.0\.0\.2 of default\/app/, readyPort)
    await shows('/metrics', /^sextant_probe_down\{.*address="127\.0\.0\.2"\} 1$/m)
  })

  await t.test('a restart does not bring it back', async (t) => {
    server.process.kill('SIGTERM')
    await server.exited()
    server = await startServer(t, { corefile: corefile(metricsPort, readyPort), beside: server })
    t.equal(await served(), '3')
  })

  await t.test('nor does a crash', async (t) => {
    server.process.kill('SIGKILL')
    await server.exited()
    server = await startServer(t, { corefile: corefile(metricsPort, readyPort), beside: server })
    t.equal(await served(), '3')
  })
})

t.test('back, step by step; and all at once away', async (t) => {
  const one = new Gateway(2)
  const two = new Gateway(3)
  const port = await freePort()
  await two.start(port)
  t.teardown(() => Promise.all([one.stop(), two.stop()]))
  const files = { 'zones/app.yaml': manifest(port) }
  const server = await startServer(t, {
    corefile: corefile(await freePort(), await freePort()),
    files,
  })
  const shareOfOne = async () => ((await draw(server, 200)).get(2) ?? 0) / 200
  await until(async () => (await shareOfOne()) === 0, 'the first to be down')
  const startMs = performance.now()
  await one.start(port)
  await server.prints(/is up/)
  // Five of a hundred and five at first; half of all when it has its weight again.
  const share = new SlowStartShare(RAMP_UP_MS)
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  while (performance.now() - startMs < RAMP_UP_MS) {
    const reply = readReply(await client.ask(QUESTION), composeQuery(QUESTION, 0))
    if (typeof reply === 'string') throw new Error(reply)
    share.note(reply.addresses[0]?.[3] === 2, performance.now() - startMs)
  }
  t.ok(share.isWithinBound, String(share))
  await until(async () => (await shareOfOne()) > 0.38, 'its full weight')
  await Promise.all([one.stop(), two.stop()])
  await server.prints(/is up[\s\S]*127\.0\.0\.2 of default\/app is down after/)
  await server.prints(/127\.0\.0\.3 of default\/app is down after/)
  await until(async () => (await draw(server, 40)).size === 2, 'all to be served all the same')
})
