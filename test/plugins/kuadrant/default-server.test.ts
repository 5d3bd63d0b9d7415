import t, { type Test } from 'tap'
import { printAddress } from '../../../src/dns/text/address.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { reachableAddresses } from '../../../src/publish/build/default-server.ts'
import { SetUp } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'

const APP = '{ dnsName: app.k.example.com, recordType: A, targets: [192.0.2.1] }'
const WILDCARD = '{ dnsName: "*.k.example.com", recordType: A, targets: [192.0.2.1] }'
const NS1 = '{ dnsName: ns1.k.example.com, recordType: A, targets: [192.0.2.9] }'
const NS1_TEXT = '{ dnsName: ns1.k.example.com, recordType: TXT, targets: [x] }'
const NS2 = '{ dnsName: k.example.com, recordType: NS, targets: [ns2.k.example.com] }'
const ELSEWHERE = '{ dnsName: k.example.com, recordType: NS, targets: [ns.example.net] }'
const LAME =
  /zone k\.example\.com\.: name server ns1\.k\.example\.com\. has no address; add nameserver ns1/
const COVERED = /has no address; clients get the addresses of \*\.k\.example\.com\.; add/

interface Row {
  readonly name: string
  readonly endpoints: readonly string[]
  /** Addresses that the block listens on. */
  readonly hosts?: readonly string[]
  readonly nameserver?: string
  /** Rdata of ns1.k.example.com A. */
  readonly want: readonly string[]
  readonly warning?: RegExp
}

const TABLE: readonly Row[] = [
  { name: 'no address', endpoints: [APP], want: [], warning: LAME },
  { name: 'a wildcard', endpoints: [WILDCARD], want: ['c0000201'], warning: COVERED },
  { name: 'a record', endpoints: [NS1], want: ['c0000209'] },
  { name: 'listens on loopback', endpoints: [APP], hosts: ['127.0.0.1'], want: [], warning: LAME },
  { name: 'listens', endpoints: [WILDCARD], hosts: ['192.0.2.53', '::1'], want: ['c0000235'] },
  { name: 'listens, with a record', endpoints: [NS1], hosts: ['192.0.2.53'], want: ['c0000209'] },
  {
    name: 'listens, with a text',
    endpoints: [NS1_TEXT],
    hosts: ['192.0.2.53'],
    want: ['c0000235'],
  },
  {
    name: 'the property with an address',
    endpoints: [APP],
    hosts: ['192.0.2.53'],
    nameserver: 'ns1.k.example.com 192.0.2.7',
    want: ['c0000207'],
  },
  {
    name: 'the property without an address',
    endpoints: [APP],
    hosts: ['192.0.2.53'],
    nameserver: 'ns1.k.example.com',
    want: [],
    warning: LAME,
  },
  { name: 'a name server elsewhere', endpoints: [ELSEWHERE], want: [] },
  { name: 'NS of a record', endpoints: [NS2], want: [], warning: /ns2\.k\.example\.com\. has no/ },
]

async function stage(t: Test, { endpoints, hosts = [], nameserver }: Row) {
  const manifest = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: a
spec:
  rootHost: k.example.com
  endpoints:
${endpoints.map((endpoint) => `  - ${endpoint}\n`).join('')}`
  const directory = t.testdir({ 'a.yaml': manifest })
  const line = nameserver === undefined ? '' : ` nameserver ${nameserver}\n`
  const corefile = `kuadrant {\n manifests ${directory}\n${line}}`
  const c = new SetUp(kuadrant, corefile, ['k.example.com.'], { listenHosts: hosts })
  t.teardown(() => c.stop())
  await c.start()
  return c
}

t.test('the addresses of the default name server', async (t) => {
  for (const row of TABLE) {
    await t.test(row.name, async (t) => {
      const c = await stage(t, row)
      const { answer } = await show(c.handler(), transaction({ name: 'ns1.k.example.com.' }))
      t.strictSame(
        answer.map((line) => line.split(' ')[4]),
        row.want,
      )
      const lines = c.lines.filter((line) => line.includes('has no address'))
      t.equal(lines.length, row.warning === undefined ? 0 : 1, lines.join('\n'))
      if (row.warning !== undefined) t.match(lines[0], row.warning)
    })
  }
})

t.test('addresses that other hosts reach', async (t) => {
  const hosts = ['0.0.0.0', '::', '127.0.0.2', '::1', 'fe80::1%eth0', 'fe80::1', '169.254.1.1']
  t.strictSame(reachableAddresses([...hosts, '']), [])
  const found = reachableAddresses([...hosts, '10.0.0.1', '2001:db8::1'])
  t.strictSame(
    found.map(({ family, bytes }) => printAddress(bytes, family)),
    ['10.0.0.1', '2001:db8::1'],
  )
})
