import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ask } from '../support/dig.ts'
import { transferred } from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { reloadZone, startUnbound } from '../support/unbound.ts'
import { until } from '../support/until.ts'
import { Delv, readKey } from './delv.ts'

// Long: it waits for TTLs to end.

/* ALIAS endpoints of a signed zone: the addresses that a resolver has found are signed, and follow what it finds. */

const upstreamZone = (serial: number, records: string): string =>
  `$TTL 5\n@ SOA ns hostmaster ${serial} 3600 600 86400 5\n@ NS ns\nns A 192.0.2.53\n${records}`

const ENDPOINTS = [
  ['s.example', 'ALIAS', 'lb.example'],
  ['s.example', 'MX', '10 mail.s.example'],
  ['mail.s.example', 'A', '192.0.2.25'],
  ['*.w.s.example', 'ALIAS', 'lb.example'],
  ['www.s.example', 'CNAME', 'x.w.s.example'],
].map(([dnsName, recordType, target]) => ({
  ...{ dnsName, recordType, targets: [target], recordTTL: 5 },
}))
const MANIFEST = JSON.stringify({
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: 'alias', namespace: 'default' },
  spec: { rootHost: 's.example', endpoints: ENDPOINTS },
})
const QUESTIONS = ['A', 'AAAA', 'TXT', 'TYPE65401', 'DS'].flatMap((type) => {
  return ['s.example', 'x.w.s.example', 'www.s.example', 'nope.s.example'].map(
    (name) => `${name} ${type}`,
  )
})

const tools = needs('dig', 'delv', 'unbound', 'ldns-verify-zone')
for (const denial of ['nsec', 'nsec3', 'compact']) {
  t.test(denial, tools, async (t) => {
    const zoneText = upstreamZone(1, 'lb A 192.0.2.7\nlb A 192.0.2.8\nlb AAAA 2001:db8::7\n')
    const upstream = await startUnbound(t, { zoneText })
    const { port, directory } = await startServer(t, {
      corefile: `s.example:{PORT} {
 bind 127.0.0.1
 dnssec {
  keys keys
  denial ${denial}
 }
 transfer {
  to *
 }
 kuadrant {
  manifests zones
  alias-resolver 127.0.0.1:${upstream.port}
 }
}
`,
      files: { 'zones/alias.json': MANIFEST },
    })
    const addresses = async (type: string): Promise<string> => {
      const { answer } = await ask('dig', port, ['+dnssec', 's.example', type])
      return answer.flatMap((line) => (/ RRSIG /.test(line) ? [] : line.split(' ').at(-1)!)).join()
    }
    const delv = new Delv(port, directory, readKey(join(directory, 'keys')))
    const validate = async (when: string): Promise<void> => {
      for (const question of QUESTIONS) {
        // Its proof is of the zone above.
        if (question === 's.example DS') continue
        await delv.expect(t, question, 'NOERROR', true)
      }
      if (denial === 'compact') return
      const path = join(directory, 'transferred')
      const lines = await transferred(port, 's.example')
      const isSoa = (line: string): boolean => / SOA /.test(line) && !/ RRSIG /.test(line)
      const sorted = [...lines.filter(isSoa), ...lines.filter((line) => !isSoa(line))]
      writeFileSync(path, `${sorted.join('\n')}\n`)
      t.notMatch(sorted.join('\n'), /TYPE65401/, when)
      const { code, stderr } = await run('ldns-verify-zone', [path])
      t.equal(code, 0, `${when}: ${stderr}`)
    }
    await until(async () => (await addresses('A')) === '192.0.2.7,192.0.2.8', 'the addresses')
    await validate('at first')
    reloadZone(upstream, upstreamZone(2, 'lb A 192.0.2.9\n'))
    await until(async () => (await addresses('A')) === '192.0.2.9', 'the change', 60_000)
    await until(async () => (await addresses('AAAA')) === '', 'IPv6 to be removed', 60_000)
    await validate('after a change')
  })
}
