import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { SetUp, setupError } from '../../support/setup.ts'

const ZONE = 'k.example.com.'

const FAULTS: readonly (readonly [line: string, want: string])[] = [
  ['alias-resolver', 'argument'],
  ['alias-resolver dns.example', 'dns.example is not an address; write it as 192.0.2.53'],
  ['alias-resolver 192.0.2.53:0', '192.0.2.53:0 is not an address'],
  ['alias-resolver /missing/resolv.conf', 'no such file'],
  ['alias-resolver 192.0.2.53\nalias-resolver 192.0.2.54', 'alias-resolver appears twice'],
  ['alias-allow 10.0.0.0/8', 'alias-allow needs alias-resolver'],
  ['alias-resolver ::1\nalias-allow 10.0.0', 'alias-allow: 10.0.0 is not a network'],
]

t.test('faults of alias-resolver and alias-allow', async (t) => {
  for (const [line, want] of FAULTS) {
    const text = `kuadrant ${ZONE} {\nmanifests zones\n${line}\n}`
    t.match(await setupError(kuadrant, text), want, line)
  }
})

const MANIFEST = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: a }
spec:
  rootHost: k.example.com
  endpoints:
    - { dnsName: k.example.com, recordType: ALIAS, targets: [lb.example.net] }
    - { dnsName: a.k.example.com, recordType: ALIAS, targets: [b.k.example.com] }
    - { dnsName: b.k.example.com, recordType: ALIAS, targets: [a.k.example.com] }
    - { dnsName: c.k.example.com, recordType: ALIAS, targets: [d.k.example.com] }
    - { dnsName: d.k.example.com, recordType: A, targets: [192.0.2.1] }
    - { dnsName: d.k.example.com, recordType: ALIAS, targets: [x.k.example.com] }
`

t.test('check reports ALIAS endpoints that have no addresses, by place', async (t) => {
  const directory = t.testdir({ 'a.yaml': MANIFEST, 'resolv.conf': 'nameserver 192.0.2.53\n' })
  const file = join(directory, 'a.yaml')
  const inside = [
    `${file}:8: DNSRecord default/a: ALIAS of a.k.example.com.: it is a loop: a.k.example.com. leads back to a.k.example.com.`,
    `${file}:9: DNSRecord default/a: ALIAS of b.k.example.com.: it is a loop: b.k.example.com. leads back to b.k.example.com.`,
    `${file}:10: DNSRecord default/a: ALIAS of c.k.example.com.: x.k.example.com. has no addresses`,
    `${file}:12: DNSRecord default/a: ALIAS of d.k.example.com.: x.k.example.com. has no addresses`,
  ]
  const outside = `${file}:7: DNSRecord default/a: ALIAS of k.example.com.: lb.example.net. is outside of the zones of this source, and the block has no \`alias-resolver\``
  const table: readonly (readonly [line: string, want: readonly string[]])[] = [
    ['', [outside, ...inside]],
    ['alias-resolver 192.0.2.53 [::1]:5353', inside],
    [`alias-resolver ${join(directory, 'resolv.conf')}`, inside],
  ]
  for (const [line, want] of table) {
    const text = `kuadrant {\n manifests ${directory}\n${line}\n}`
    const { warnings } = await new SetUp(kuadrant, text, [ZONE]).check()
    t.same(
      warnings.filter((one) => one.includes('ALIAS')),
      want,
      line,
    )
  }
  writeFileSync(join(directory, 'resolv.conf'), 'search example.com\n')
  const text = `kuadrant ${ZONE} {\n manifests ${directory}\nalias-resolver ${directory}/resolv.conf\n}`
  t.match(await setupError(kuadrant, text), 'has no line `nameserver ADDR`')
})
