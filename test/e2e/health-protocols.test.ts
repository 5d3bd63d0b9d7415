import t from 'tap'
import { composeQuery, UdpClient } from '../support/client.ts'
import { readReply } from '../support/read-reply.ts'
import { putFile, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const COREFILE = `k.example.com:{PORT} {
    bind 127.0.0.1
    errors
    kuadrant {
        manifests zones
        probe probes
        probe-allow 127.0.0.0/8
        probe-exec alive /bin/sh -c "test $SEXTANT_PROBE_ADDRESS != 127.0.0.3"
    }
}
`

function manifest(name: string, targets: readonly string[], check: string): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: ${name}}
spec:
  rootHost: ${name}.k.example.com
  healthCheck: {interval: 1s, failureThreshold: 1, ${check}}
  endpoints:
  - {dnsName: ${name}.k.example.com, recordType: A, targets: [${targets.join(', ')}]}
`
}

t.test('a DNS server and a command decide which addresses are served', async (t) => {
  const exec = manifest('exec', ['127.0.0.2', '127.0.0.3'], 'protocol: EXEC, command: alive')
  const files = { 'zones/exec.yaml': exec }
  const server = await startServer(t, { corefile: COREFILE, files })
  // The server that answers the checks is this one.
  const check = `protocol: DNS, port: ${server.port}, query: dns.k.example.com A, expectedAddress: 127.0.0.1`
  putFile(server.directory, 'zones/dns.yaml', manifest('dns', ['127.0.0.1', '127.0.0.9'], check))
  const client = await UdpClient.connect(server.port)
  t.teardown(() => client.close())
  const becomes = (name: string, want: string) => {
    const question = { name: `${name}.k.example.com`, type: 'A' }
    return until(async () => {
      const reply = readReply(await client.ask(question), composeQuery(question, 0))
      return typeof reply !== 'string' && reply.addresses.map((a) => a.join('.')).join() === want
    }, `${name}: ${want}`)
  }
  await becomes('exec', '127.0.0.2')
  await server.prints(/127\.0\.0\.3 of default\/exec is down after 2 failures: exit code 1/)
  await becomes('dns', '127.0.0.1')
  await server.prints(/127\.0\.0\.9 of default\/dns is down after 2 failures: connection refused/)
})
