import { type DnsResolver, Packet, TCPClient, UDPClient } from 'dns2'
import t from 'tap'
import { startServer } from '../support/server.ts'

/*
 * dns2 is a DNS library by others. Its clients read our replies with a parser that does not share our mistakes. They
 * send no EDNS, except with a client subnet.
 */

const TYPES: Readonly<Record<string, number>> = Packet.TYPE

/** So long that a reply over UDP is truncated. */
const LONG_TEXTS = Array.from({ length: 12 }, (_, i) => `${i}-${'x'.repeat(90)}`)

const ZONE = `@ 60 SOA ns host 1 7200 1800 86400 30
@     60 NS    ns
@     60 MX    10 mail
@     60 CAA   0 issue "ca.example.net"
ns    60 A     192.0.2.53
mail  60 A     192.0.2.25
six   60 AAAA  2001:db8::1
www   60 CNAME mail
txt   60 TXT   "one" "two words"
_x._tcp 60 SRV 1 2 443 mail
ptr   60 PTR   mail
*.wild 60 A    192.0.2.77
${LONG_TEXTS.map((text) => `long 60 TXT "${text}"`).join('\n')}
`

const RECORD = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app, namespace: gateways}
spec:
  rootHost: app.k.example.org
  endpoints:
  - dnsName: app.k.example.org
    recordType: CNAME
    recordTTL: 60
    setIdentifier: GEO-EU
    targets: [eu.app.k.example.org]
    providerSpecific: [{name: geo-code, value: GEO-EU}]
  - dnsName: app.k.example.org
    recordType: CNAME
    recordTTL: 60
    setIdentifier: default
    targets: [us.app.k.example.org]
    providerSpecific: [{name: geo-code, value: '*'}]
  - {dnsName: eu.app.k.example.org, recordType: A, recordTTL: 60, targets: [192.0.2.1]}
  - {dnsName: us.app.k.example.org, recordType: A, recordTTL: 60, targets: [192.0.2.2]}
`

const COREFILE = `example.org:{PORT} {
  bind 127.0.0.1
  file db
}
k.example.org:{PORT} {
  bind 127.0.0.1
  geoip {
    edns-subnet
    net 203.0.113.0/24 DE
  }
  kuadrant {
    manifests records
  }
}
`

const SOA = 'example.org SOA ns.example.org host.example.org 1 7200 1800 86400 30'
const EU = ['app.k.example.org CNAME eu.app.k.example.org', 'eu.app.k.example.org A 192.0.2.1']
const DEFAULT = ['app.k.example.org CNAME us.app.k.example.org', 'us.app.k.example.org A 192.0.2.2']

interface Row {
  readonly name: string
  readonly type: string
  /** Address and prefix length of a client subnet. */
  readonly clientIp?: string
  readonly rcode?: number
  readonly answer: readonly string[]
  readonly authority?: readonly string[]
  readonly additional?: readonly string[]
  /** The prefix length for which the choice holds. */
  readonly scopeBits?: number
  /** The reply over UDP has the flag TC and no whole answer. */
  readonly isLong?: boolean
}

const MAIL = 'mail.example.org A 192.0.2.25'
const NS = 'example.org NS ns.example.org'

/** As CoreDNS does, `file` puts the NS records of the zone beside each answer. */
const IN_FILE: readonly Row[] = [
  { name: 'mail.example.org', type: 'A', answer: [MAIL] },
  { name: 'MAIL.example.ORG', type: 'A', answer: [MAIL] },
  { name: 'six.example.org', type: 'AAAA', answer: ['six.example.org AAAA 2001:db8::1'] },
  {
    name: 'www.example.org',
    type: 'A',
    answer: ['www.example.org CNAME mail.example.org', MAIL],
  },
  {
    name: 'example.org',
    type: 'MX',
    answer: ['example.org MX 10 mail.example.org'],
    additional: [MAIL],
  },
  {
    name: 'example.org',
    type: 'NS',
    answer: [NS],
    authority: [],
    additional: ['ns.example.org A 192.0.2.53'],
  },
  { name: 'example.org', type: 'SOA', answer: [SOA] },
  { name: 'example.org', type: 'CAA', answer: ['example.org CAA 0 issue ca.example.net'] },
  { name: 'txt.example.org', type: 'TXT', answer: ['txt.example.org TXT one|two words'] },
  { name: 'ptr.example.org', type: 'PTR', answer: ['ptr.example.org PTR mail.example.org'] },
  {
    name: '_x._tcp.example.org',
    type: 'SRV',
    answer: ['_x._tcp.example.org SRV 1 2 443 mail.example.org'],
    additional: [MAIL],
  },
  { name: 'a.wild.example.org', type: 'A', answer: ['a.wild.example.org A 192.0.2.77'] },
  {
    name: 'long.example.org',
    type: 'TXT',
    answer: LONG_TEXTS.map((text) => `long.example.org TXT ${text}`),
    isLong: true,
  },
]

const TABLE: readonly Row[] = [
  ...IN_FILE.map((row) => ({ authority: [NS], ...row })),
  { name: 'mail.example.org', type: 'AAAA', answer: [], authority: [SOA] },
  { name: 'none.example.org', type: 'A', rcode: 3, answer: [], authority: [SOA] },
  { name: 'example.net', type: 'A', rcode: 5, answer: [] },
  { name: 'app.k.example.org', type: 'A', answer: DEFAULT },
  { name: 'app.k.example.org', type: 'A', clientIp: '203.0.113.0/24', answer: EU, scopeBits: 24 },
  {
    name: 'app.k.example.org',
    type: 'A',
    clientIp: '203.0.112.0/24',
    answer: DEFAULT,
    scopeBits: 24,
  },
]

/** Owner, type and data of a record, as dns2 reads them, in lower case. */
function print(record: Packet['answers'][number]): string {
  const r = record
  const typeOf = (type: number) =>
    Object.entries(TYPES).find(([, n]) => n === type)?.[0] ?? String(type)
  const data: Readonly<Record<string, readonly unknown[]>> = {
    A: [r.address],
    AAAA: [r.address],
    CNAME: [r.domain],
    PTR: [r.domain],
    NS: [r.ns],
    MX: [r.priority, r.exchange],
    SRV: [r.priority, r.weight, r.port, r.target],
    CAA: [r.flags, r.tag, r.value],
    TXT: [Array.isArray(r.data) ? r.data.join('|') : r.data],
    SOA: [r.primary, r.admin, r.serial, r.refresh, r.retry, r.expiration, r.minimum],
  }
  const type = typeOf(r.type)
  const fields = [r.name, type, ...(data[type] ?? ['?'])].join(' ').toLowerCase()
  return fields.replace(` ${type.toLowerCase()} `, ` ${type} `)
}

/** The scope of the client subnet that a reply carries; undefined = it has none. */
function scopeOf({ additionals }: Packet): number | undefined {
  for (const record of additionals) {
    if (!('rdata' in record) || !Array.isArray(record.rdata)) continue
    for (const option of record.rdata) return option.scopePrefixLength
  }
  return undefined
}

t.test('the clients of dns2 read what is served', async (t) => {
  const server = await startServer(t, {
    corefile: COREFILE,
    files: { db: ZONE, 'records/app.yaml': RECORD },
  })
  const place = { dns: '127.0.0.1', port: server.port }
  const clients: readonly (readonly [string, DnsResolver])[] = [
    ['UDP', UDPClient({ ...place, retryOverTCP: false })],
    ['UDP, then TCP', UDPClient(place)],
    ['TCP', TCPClient(place)],
  ]
  for (const row of TABLE) {
    for (const [way, resolve] of clients) {
      const { name, type, clientIp, rcode = 0, answer, authority = [], additional = [] } = row
      const label = `${way}: ${name} ${type}${clientIp === undefined ? '' : ` for ${clientIp}`}`
      const options = { recursive: false, ...(clientIp !== undefined && { clientIp }) }
      const reply = await resolve(name, type, Packet.CLASS.IN, options)
      const isTruncated = row.isLong === true && way === 'UDP'
      t.match(reply.header, { qr: 1, tc: isTruncated ? 1 : 0, rcode }, label)
      t.equal(reply.header.aa, rcode === 5 ? 0 : 1, `${label}: authoritative`)
      t.match(reply.questions, [{ name, type: TYPES[type] }], `${label}: the question`)
      if (isTruncated) continue
      t.strictSame(reply.answers.map(print).sort(), [...answer].sort(), label)
      t.strictSame(reply.authorities.map(print), authority, `${label}: authority`)
      const others = reply.additionals.filter(({ type }) => type !== TYPES.EDNS)
      t.strictSame(others.map(print), additional, `${label}: additional`)
      t.equal(scopeOf(reply), row.scopeBits, `${label}: scope`)
    }
  }
})
