import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ask, askEach } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { putFile, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { Delv } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'

// Long: it starts servers, and delv for each question.

/* A zone of DNSRecords with GEO and weights, signed in its image, validated by delv and by Unbound. */

const start = promisify(execFile)

const ENDPOINTS = `  - { dnsName: geo.s.example, recordType: A, recordTTL: 60, targets: [192.0.2.1], setIdentifier: us, providerSpecific: [{ name: geo-code, value: US }, { name: weight, value: "100" }] }
  - { dnsName: geo.s.example, recordType: A, recordTTL: 60, targets: [192.0.2.2], setIdentifier: us2, providerSpecific: [{ name: geo-code, value: US }, { name: weight, value: "50" }] }
  - { dnsName: geo.s.example, recordType: A, recordTTL: 60, targets: [192.0.2.3], setIdentifier: de, providerSpecific: [{ name: geo-code, value: DE }, { name: weight, value: "100" }] }
  - { dnsName: geo.s.example, recordType: A, recordTTL: 60, targets: [192.0.2.9], setIdentifier: any, providerSpecific: [{ name: geo-code, value: "*" }] }
  - { dnsName: www.s.example, recordType: CNAME, recordTTL: 60, targets: [x.wild.s.example] }
  - { dnsName: "*.wild.s.example", recordType: CNAME, recordTTL: 60, targets: [geo.s.example] }
  - { dnsName: a.b.ent.s.example, recordType: TXT, recordTTL: 60, targets: [text] }
  - { dnsName: svc.s.example, recordType: HTTPS, recordTTL: 60, targets: ["1 . alpn=h2"] }
`

function manifest(endpoints: string): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app, namespace: default }
spec:
  rootHost: s.example
  endpoints:
${endpoints}`
}

const QUESTIONS: readonly [question: string, rcode: string][] = [
  ['geo.s.example A', 'NOERROR'],
  ['geo.s.example AAAA', 'NOERROR'],
  ['www.s.example A', 'NOERROR'],
  ['www.s.example CNAME', 'NOERROR'],
  ['other.wild.s.example A', 'NOERROR'],
  ['other.wild.s.example TXT', 'NOERROR'],
  ['ent.s.example A', 'NOERROR'],
  ['a.b.ent.s.example TXT', 'NOERROR'],
  ['svc.s.example HTTPS', 'NOERROR'],
  ['s.example DNSKEY', 'NOERROR'],
  ['s.example SOA', 'NOERROR'],
  ['nope.s.example A', 'NXDOMAIN'],
  ['nope.geo.s.example A', 'NXDOMAIN'],
]

const tools = needs('dig', 'delv', 'unbound', 'dnssec-keygen')
for (const denial of ['nsec', 'nsec3']) {
  t.test(`delv and Unbound validate a zone of DNSRecords with ${denial}`, tools, async (t) => {
    const directory = temporaryDirectory(t)
    const generate = ['-q', '-K', directory, '-a', 'ECDSAP256SHA256', '-f', 'KSK', 's.example']
    const { stdout } = await start('dnssec-keygen', generate)
    const base = join(directory, stdout.trim())
    const key = readFileSync(`${base}.key`, 'latin1')
      .split('\n')
      .find((line) => line.includes('DNSKEY'))!
    const server = await startServer(t, {
      corefile: `s.example:{PORT} {
  bind 127.0.0.1
  geoip {
    edns-subnet
    net 127.0.0.2/32 US
    net 127.0.0.3/32 DE
  }
  dnssec {
    key file ${base}
    denial ${denial}
  }
  kuadrant {
    manifests zones
  }
}
`,
      files: { 'zones/app.yaml': manifest(ENDPOINTS) },
    })
    const delv = new Delv(server.port, directory, key)
    const validate = async (questions: typeof QUESTIONS): Promise<void> => {
      for (const [question, rcode] of questions) await delv.expect(t, question, rcode, true)
      for (const from of ['127.0.0.2', '127.0.0.3'])
        await delv.expect(t, `geo.s.example A -b ${from}`, 'NOERROR', true)
      const zones = { 's.example': [server.port] }
      const unbound = await startUnboundResolver(t, { key, zones, reuses: 'nothing' })
      const split = questions.map(([question]) => question.split(' '))
      for (const [i, reply] of (
        await askEach(unbound.port, ['+dnssec', '+rec'], split)
      ).entries()) {
        const [question, rcode] = questions[i]!
        t.equal(reply.status, rcode, `${question}: rcode of Unbound`)
        t.ok(reply.flags.includes('ad'), `${question}: AD of Unbound`)
      }
    }
    await validate(QUESTIONS)
    const changed = ENDPOINTS.replace('"50"', '"0"').replace('a.b.ent', 'z.b.ent')
    putFile(server.directory, 'zones/app.yaml', manifest(changed))
    await until(async () => {
      return (await ask('dig', server.port, ['z.b.ent.s.example', 'TXT'])).status === 'NOERROR'
    }, 'the change')
    await validate([
      ...QUESTIONS.filter(([question]) => !question.startsWith('a.b')),
      ['z.b.ent.s.example TXT', 'NOERROR'],
      ['a.b.ent.s.example TXT', 'NXDOMAIN'],
    ])
  })
}
