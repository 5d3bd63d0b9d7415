import t from 'tap'
import { printType, scanType } from '../../src/dns/iana/types.ts'
import type { Message } from '../../src/dns/message/message.ts'
import { parseMessage } from '../../src/dns/message/parse-message.ts'
import { printName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { UdpClient } from '../support/client.ts'
import { faultsOfMessage } from '../support/response-validator.ts'
import { freePort, startServer } from '../support/server.ts'
import { wire } from '../support/zone-names.ts'

// Long: it starts servers with many blocks.

/*
 * Directives that change answers of a signed zone: the changed answers validate, whether the zone is signed in its image
 * or on demand.
 */

const ZONE = `$TTL 600
@ SOA ns1 hostmaster 7 3600 600 86400 300
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.4
www A 192.0.2.5
www TXT text
mail MX 10 www
mail AAAA 2001:db8::c000:204
alias CNAME www
*.wild A 192.0.2.7
insecure NS ns.insecure
ns.insecure A 192.0.2.11
`
const HOSTS = `hosts {
    192.0.2.4 www.s.example
    192.0.2.5 www.s.example
    2001:db8::c000:204 mail.s.example
    192.0.2.7 *.wild.s.example
    fallthrough
  }
  template IN ANY s.example {
    match nope|^s\\.|\\.a\\.
    rcode NXDOMAIN
    fallthrough
  }`

interface Row {
  readonly lines: string
  /** Question, and a record of its answer; '' = the answer is empty. */
  readonly asks: Readonly<Record<string, string>>
  /** Questions of names that do not exist. */
  readonly missing?: readonly string[]
  /** Only the image has the records. */
  readonly ofFile?: Readonly<Record<string, string>>
}

const ROWS: Readonly<Record<string, Row>> = {
  'rewrite name': {
    lines: 'rewrite name old.s.example www.s.example',
    asks: { 'old A': 'old A 192.0.2.4', 'www A': 'www A 192.0.2.4', 'nope A': '', 'old MX': '' },
    ofFile: { 'old TXT': 'old TXT "text"' },
  },
  'rewrite name to a missing one': {
    lines: 'rewrite name www.s.example nope.s.example',
    asks: { 'www A': '', 'www TXT': '' },
    missing: ['www A', 'www TXT'],
  },
  'rewrite name suffix': {
    lines: 'rewrite name suffix .old.s.example .s.example answer auto',
    asks: { 'www.old A': 'www.old A 192.0.2.4', 'nope.old A': '', 'a.wild.old A': 'a.wild.old A' },
    ofFile: {
      'mail.old MX': 'mail.old MX 10 www.old.s.example.',
      'alias.old A': 'www.old A 192.0.2.5',
    },
  },
  'rewrite name of another zone': {
    lines: 'rewrite name regex (.*)\\.s\\.example {1}.o.example answer auto',
    asks: { 'www A': 'www A 198.51.100.1', 'nope A': '', 'www TXT': '' },
  },
  'rewrite type': { lines: 'rewrite type A AAAA', asks: { 'www A': '' } },
  'rewrite rcode': {
    lines: 'rewrite rcode nope.s.example NXDOMAIN NOERROR',
    asks: { 'nope A': '' },
  },
  'rewrite ttl': { lines: 'rewrite ttl www.s.example 1-30', asks: { 'www A': 'www A 192.0.2.4' } },
  'rewrite cname': {
    lines: 'rewrite cname www.s.example. mail.s.example.',
    asks: { 'www A': 'www A 192.0.2.5' },
    ofFile: {
      'alias AAAA': 'mail AAAA 2001:db8::c000:204',
    },
  },
  'acl filter': {
    lines: 'acl {\n filter type A\n }',
    asks: { 'www A': '', 'nope A': '', 's.example A': '', 'mail AAAA': 'mail AAAA' },
  },
  local: { lines: 'local', asks: { 'localhost A': 'localhost A 127.0.0.1', 'localhost MX': '' } },
  dns64: {
    missing: ['nope AAAA'],
    lines: 'dns64 {\n allow_ipv4\n }',
    asks: {
      'www AAAA': 'www AAAA 64:ff9b::c000:204',
      'nope AAAA': '',
      'a.wild AAAA': 'a.wild AAAA',
    },
  },
  siit: {
    missing: ['nope A'],
    lines: 'siit {\n ipv6_prefix 2001:db8::/96\n }',
    asks: { 'mail A': 'mail A 192.0.2.4', 'nope A': '' },
  },
  autopath: {
    lines: 'autopath resolv.conf',
    asks: { 'www.a A': 'www.a CNAME www.s.example.', 'nope.a A': '' },
  },
}

const SOURCES: Readonly<Record<string, readonly [dnssec: string, source: string]>> = {
  'zone with NSEC': ['denial nsec', 'file db'],
  'zone with NSEC3': ['denial nsec3', 'file db'],
  'zone with compact denial': ['denial compact', 'file db'],
  'names that are signed on demand': ['', HOSTS],
}

/** `www A 192.0.2.4`: names of the zone without it. */
function print({ owner, type, rdata }: Message['answer'][number]): string {
  const name = printName(owner).replace(/\.?s\.example\.$/, '')
  return `${name} ${printType(type)} ${printRdata(type, rdata)}`
}

for (const [source, [property, serving]] of Object.entries(SOURCES)) {
  t.test(source, async (t) => {
    const ports = await Promise.all(Object.keys(ROWS).map(() => freePort()))
    const block = ({ lines }: Row, port: number | string): string =>
      `s.example:${port} {\n bind 127.0.0.1\n ${lines}\n dnssec {\n keys keys\n ${property}\n }\n file other o.example\n ${serving}\n}\n`
    const corefile = Object.values(ROWS).map((row, i) => block(row, ports[i]!))
    await startServer(t, {
      corefile: `plain.example:{PORT} {\n bind 127.0.0.1\n whoami\n}\n${corefile.join('')}`,
      files: {
        db: ZONE,
        other: '@ 600 SOA ns1 hostmaster 1 2 3 4 300\n@ 600 NS ns1\nwww 600 A 198.51.100.1\n',
        'resolv.conf': 'search a.s.example s.example\n',
      },
    })
    for (const [i, [name, row]] of Object.entries(ROWS).entries()) {
      const client = await UdpClient.connect(ports[i]!)
      const asked = async (question: string): Promise<Message> => {
        const [first = '', type = 'A'] = question.split(' ')
        const qname = first === 's.example' ? first : `${first}.s.example`
        const reply = await client.ask({ name: qname, type, dnssecOk: true })
        return parseMessage(reply)!
      }
      const dnskeys = (await asked('s.example DNSKEY')).answer
        .filter(({ type }) => type === scanType('DNSKEY'))
        .map(({ rdata }) => rdata)
      const zone = { apex: wire('s.example.'), dnskeys, nowSeconds: Date.now() / 1000 }
      const asks = { ...row.asks, ...(serving === 'file db' ? row.ofFile : {}) }
      for (const [question, want] of Object.entries(asks)) {
        const message = await asked(question)
        t.strictSame(faultsOfMessage(message, zone), [], `${name}: ${question}`)
        const isCompact = property === 'denial compact' || property === ''
        if (isCompact && row.missing?.includes(question)) {
          const proofs = message.authority.map(print).filter((line) => / NSEC /.test(line))
          t.match(proofs, [/NSEC \S+ RRSIG NSEC NXNAME$/], `${name}: ${question} does not exist`)
        }
        const lines = message.answer.map(print)
        const isThere = lines.some((line) => line.startsWith(want))
        t.ok(
          want === '' ? lines.length === 0 : isThere,
          `${name}: ${question}: ${lines.join('; ')}`,
        )
      }
      client.close()
    }
  })
}
