import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import t from 'tap'
import { composeQuery, UdpClient } from '../support/client.ts'
import { readReply } from '../support/read-reply.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

// Long: it waits until shifts have gone their steps.

const HOST = 'app.k.example.com'
const QUESTION = { name: HOST, type: 'A' }

const COREFILE = `k.example.com:{PORT} {
    bind 127.0.0.1
    errors
    kuadrant {
        manifests zones
        probe probes
        probe-allow 127.0.0.0/8
        shift shifts
    }
}
`

function manifest(port: number): string {
  const endpoint = (last: number, weight: number) => `  - dnsName: ${HOST}
    recordType: A
    setIdentifier: s${last}
    targets: [127.0.0.${last}]
    providerSpecific: [{name: weight, value: "${weight}"}]
`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app
  annotations: { sextant.io/shift: "to=s3 steps=60%,100% bake=1h" }
spec:
  rootHost: ${HOST}
  healthCheck: {protocol: TCP, port: ${port}, interval: 3s, failureThreshold: 1}
  endpoints:
${endpoint(2, 100)}${endpoint(3, 0)}`
}

async function listen(port: number, host: string): Promise<Server> {
  const server = createServer((socket) => socket.destroy()).listen(port, host)
  await once(server, 'listening')
  return server
}

/** Number of answers of so many that have 127.0.0.3; the others have 127.0.0.2. */
async function draw(server: RunningServer, count: number): Promise<number> {
  const client = await UdpClient.connect(server.port)
  let found = 0
  for (let i = 0; i < count; i++) {
    const reply = readReply(await client.ask(QUESTION), composeQuery(QUESTION, 0))
    if (typeof reply === 'string') throw new Error(reply)
    if (reply.addresses[0]![3] === 3) found++
  }
  client.close()
  return found
}

t.test('a shift is reverted at once when a probe finds its target down', async (t) => {
  const port = await freePort()
  const old = await listen(port, '127.0.0.2')
  let target = await listen(port, '127.0.0.3')
  t.teardown(() => [old, target].map((server) => server.close()))
  const files = { 'zones/app.yaml': manifest(port) }
  let server = await startServer(t, { corefile: COREFILE, files })
  await server.prints(/shift of default\/app to s3: step 1 of 2 \(60 %\) until /)
  const before = await draw(server, 1000)
  t.ok(before > 500 && before < 700, `${before} of 1000`)

  target.close()
  await server.prints(/127\.0\.0\.3 of default\/app is down/)
  const foundMs = Date.now()
  await server.prints(
    /shift of default\/app to s3: reverted at step 1 of 2 \(60 %\): 127\.0\.0\.3 is/,
  )
  await until(async () => (await draw(server, 20)) === 0, 'the old weights')
  t.ok(Date.now() - foundMs < 1000, `${Date.now() - foundMs} ms`)

  target = await listen(port, '127.0.0.3')
  await server.prints(/127\.0\.0\.3 of default\/app is up/)
  t.equal(await draw(server, 100), 0, 'it stays reverted')
  server.process.kill('SIGTERM')
  await server.exited()
  server = await startServer(t, { corefile: COREFILE, beside: server })
  t.equal(await draw(server, 100), 0, 'also after a restart')
})
