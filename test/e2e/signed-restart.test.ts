import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { ask } from '../support/dig.ts'
import { freePort } from '../support/free-port.ts'
import { getText } from '../support/get-text.ts'
import { needs } from '../support/peer.ts'
import { putFile, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

// Long: it starts servers.

/* Signatures outlast a restart and a reload. */

const start = promisify(execFile)
const NAMES = 300

const manifest = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app, namespace: default }
spec:
  rootHost: s.example
  endpoints:
${Array.from({ length: NAMES }, (_, i) => {
  const weight = `providerSpecific: [{ name: weight, value: "${i + 1}" }]`
  return `  - { dnsName: n${i}.s.example, recordType: A, recordTTL: 60, targets: [192.0.2.1], setIdentifier: a, ${weight} }
  - { dnsName: n${i}.s.example, recordType: A, recordTTL: 60, targets: [192.0.2.2], setIdentifier: b, ${weight} }
`
}).join('')}`

async function madeBy(port: number): Promise<number> {
  let made: number | undefined
  await until(async () => {
    const { text } = await getText(`http://127.0.0.1:${port}/metrics`).catch(() => ({ text: '' }))
    const found = /^sextant_zone_signatures_made_total\{zone="s\.example\."\} (\d+)/m.exec(text)
    made = found === null ? undefined : Number(found[1])
    return made !== undefined
  }, 'the metric')
  return made!
}

async function soaOf(port: number): Promise<string> {
  const { answer } = await ask('dig', port, ['+dnssec', 's.example', 'SOA'])
  return answer.join('\n')
}

async function prepare(t: Test) {
  const directory = temporaryDirectory(t)
  const generate = ['-q', '-K', directory, '-a', 'ECDSAP256SHA256', '-f', 'KSK', 's.example']
  const { stdout } = await start('dnssec-keygen', generate)
  const [metrics, base] = [await freePort(), join(directory, stdout.trim())]
  const corefile = (policy = ''): string => `s.example:{PORT} {
  bind 127.0.0.1
  prometheus 127.0.0.1:${metrics}
  reload 2s 1s
  dnssec {
    key file ${base}
    ${policy}
  }
  kuadrant {
    manifests zones
    snapshot zones.snapshot 1s
    serials zones.serials
  }
}
`
  return { metrics, corefile }
}

const tools = needs('dig', 'dnssec-keygen')
t.test('a restart from a snapshot makes no signature', tools, async (t) => {
  const { metrics, corefile } = await prepare(t)
  const files = { 'zones/app.yaml': manifest }
  const first = await startServer(t, { corefile: corefile(), files })
  t.ok((await madeBy(metrics)) > NAMES)
  const before = await soaOf(first.port)
  first.process.kill('SIGTERM')
  await first.exited()
  const second = await startServer(t, { corefile: corefile(), beside: first })
  await second.prints(/snapshot .* loaded/)
  t.equal(await soaOf(second.port), before, 'while the snapshot is served')
  t.equal(await madeBy(metrics), 0)
  t.equal(await soaOf(second.port), before)
})

t.test('a reload with another way to deny makes only what is new', tools, async (t) => {
  const { metrics, corefile } = await prepare(t)
  const files = { 'zones/app.yaml': manifest }
  const server = await startServer(t, { corefile: corefile(), files })
  const made = await madeBy(metrics)
  t.ok(made > 2 * NAMES)
  const changed = corefile('denial nsec3').replaceAll('{PORT}', String(server.port))
  putFile(server.directory, 'Corefile', changed)
  await until(async () => {
    const { text } = await ask('dig', server.port, ['+dnssec', 'nope.s.example', 'A'])
    return text.includes('NSEC3')
  }, 'NSEC3')
  const after = (await madeBy(metrics)) - made
  t.ok(after > NAMES && after < 1.5 * NAMES, `proofs and SOA, not the sets: ${after}`)
})
