import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { check } from '../../src/cli/check.ts'
import { recordOutput } from '../support/recorded-output.ts'

const PARENT = '@ 60 SOA ns.example.net. host 1 2 3 4 5\n@ 60 NS ns.example.net.\n'
const MANIFEST = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: a }
spec:
  rootHost: example.org
  endpoints:
  - { dnsName: w.example.org, recordType: CNAME, targets: [x.sub.example.org] }
  - { dnsName: v.example.org, recordType: CNAME, targets: [none.example.org] }
  - { dnsName: d.example.org, recordType: NS, targets: [ns.sub.example.org] }
`

/** Zone example.org leads to x.sub.example.org, which another server block may have. */
const FILE = 'file DIR/db.example.org'
const AUTO = 'auto {\n directory DIR\n }'
const RECORDS = 'kuadrant {\n manifests DIR\n nameserver ns1.example.org 192.0.2.53\n }'

const CASES: readonly (readonly [directive: string, other: string, want: readonly RegExp[]])[] = [
  [FILE, 'sub.example.net', [/CNAME of w/, /name server ns\.sub/]],
  [FILE, 'example.org:1053', [/CNAME of w/, /name server ns\.sub/]],
  [FILE, 'sub.example.org', []],
  [AUTO, 'example.net', [/CNAME of w/, /name server ns\.sub/]],
  [AUTO, 'x.sub.example.org sub.example.org', []],
  [RECORDS, 'example.net', [/CNAME of w/, /CNAME of v/, /name server ns\.sub/]],
  [RECORDS, 'SUB.example.org', [/CNAME of v/]],
]

for (const [directive, other, want] of CASES) {
  t.test(`names of another block: ${directive.slice(0, 8)} beside ${other}`, async (t) => {
    const directory = t.testdir({
      'db.example.org': `${PARENT}w 60 CNAME x.sub\nd 60 NS ns.sub\n`,
      'a.yaml': MANIFEST,
    })
    const { output, errors } = recordOutput(directory)
    const corefile = `example.org {\n ${directive}\n}\n${other} {\n whoami\n}\n`
    writeFileSync(join(directory, 'Corefile'), corefile.replaceAll('DIR', directory))
    await check(['-conf', join(directory, 'Corefile')], output)
    const found = errors.filter((line) => /CNAME of|name server/.test(line))
    t.match(found, want)
    t.equal(found.length, want.length, found.join('\n'))
  })
}
