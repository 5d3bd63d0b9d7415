import { join } from 'node:path'
import t, { type Test } from 'tap'
import { askEach, type Reply } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { readKey } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'

// Long: it starts a resolver for each zone.

/*
 * Signed replies over UDP that are too long: TC, and whole RRsets with their signatures or nothing of them (RFC 2181
 * section 9, RFC 4035 section 3.1.1). It is the same for each way to sign.
 */

const SIZES = [512, 560, 620, 700, 800, 900, 1000, 1100, 1232]
const ADDRESSES = Array.from({ length: 18 }, (_, i) => `2001:db8::${i + 1}`)
const TEXTS = ['a', 'b', 'c'].map((one) => one.repeat(120))

const FILE = `$TTL 600
@ SOA ns1 hostmaster 7 3600 600 86400 300
@ NS ns1
@ NS ns2
ns1 A 192.0.2.1
ns2 AAAA 2001:db8::53
${ADDRESSES.map((address) => `big AAAA ${address}\n`).join('')}big A 192.0.2.4
${TEXTS.map((text) => `big TXT ${text}\n`).join('')}alias CNAME big
*.wild CNAME alias
mail MX 10 big
mail MX 20 ns1
cut NS ns.cut
cut NS ns2.cut
${ADDRESSES.map((address) => `ns.cut AAAA ${address}\n`).join('')}ns2.cut A 192.0.2.9
`

function endpoint(zone: string, name: string, type: string, targets: readonly string[]): object {
  return { dnsName: `${name}.${zone}`, recordType: type, recordTTL: 60, targets }
}

function manifest(zone: string): string {
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'big', namespace: 'default' },
    spec: {
      rootHost: zone,
      endpoints: [
        endpoint(zone, 'big', 'AAAA', ADDRESSES),
        endpoint(zone, 'big', 'TXT', TEXTS),
        endpoint(zone, 'alias', 'CNAME', [`big.${zone}`]),
        endpoint(zone, '*.wild', 'CNAME', [`alias.${zone}`]),
      ],
    },
  })
}

const hosts = (zone: string): string => `hosts {
   192.0.2.3 ${zone}
   ${ADDRESSES.map((address) => `${address} big.${zone}`).join('\n   ')}
   fallthrough
  }
  template IN TXT ${zone} {
   match ^big\\.
   ${TEXTS.map((text) => `answer "{{ .Name }} 60 IN TXT ${text}"`).join('\n   ')}
   fallthrough
  }
  template IN ANY ${zone} {
   match ^(alias|[a-z]+\\.wild)\\.
   answer "{{ .Name }} 60 IN CNAME big.${zone}."
   ${ADDRESSES.map((address) => `answer "big.${zone}. 60 IN AAAA ${address}"`).join('\n   ')}
   fallthrough
  }
  template IN ANY ${zone} {
   match ^nope\\.
   rcode NXDOMAIN
   fallthrough
  }`

/** Lines of `dnssec` and of the source, and further questions. */
interface Row {
  readonly dnssec?: string
  readonly lines: (zone: string) => string
  readonly questions?: readonly string[]
}

const OF_FILES = ['big ANY', 'mail MX', 'cut A', 'x.cut A', 'x.wild TXT']
const ROWS: Readonly<Record<string, Row>> = {
  nsec: { lines: () => 'file db', questions: OF_FILES },
  nsec3: { dnssec: 'denial nsec3', lines: () => 'file db', questions: OF_FILES },
  compact: { dnssec: 'denial compact', lines: () => 'file db', questions: OF_FILES },
  rewritten: {
    lines: (zone) => `rewrite name other.${zone} big.${zone}\n file db`,
    questions: [...OF_FILES, 'other AAAA'],
  },
  kuadrant: { lines: () => 'kuadrant {\n manifests records\n }', questions: ['big ANY'] },
  'compact kuadrant': {
    dnssec: 'denial compact',
    lines: () => 'kuadrant {\n manifests records\n }',
  },
  'on demand': { lines: hosts },
}
const QUESTIONS = [
  ...['big AAAA', 'big TXT', 'big MX', 'alias AAAA', 'x.wild AAAA'],
  ...['nope A', '@ SOA', '@ DNSKEY', '@ CDS'],
]

/** The RRsets of a section, with the number of records and of signatures. */
function setsOf(lines: readonly string[]): Map<string, string> {
  const counts = new Map<string, [number, number]>()
  for (const line of lines) {
    const [owner, , , type, covered] = line.split(' ')
    const isSignature = type === 'RRSIG'
    const key = `${owner} ${isSignature ? covered : type}`.toLowerCase()
    const count = counts.get(key) ?? [0, 0]
    count[isSignature ? 1 : 0]++
    counts.set(key, count)
  }
  return new Map([...counts].map(([key, count]) => [key, count.join(' records, signatures ')]))
}

function check(t: Test, reply: Reply, whole: Reply, octets: number): boolean {
  const sections = ['answer', 'authority', 'additional'] as const
  const isTruncated = reply.flags.includes('tc')
  const isPositive = whole.flags.includes('aa') && whole.answer.length > 0
  let isIncomplete = false
  for (const section of sections) {
    const found = setsOf(reply[section])
    const wanted = setsOf(whole[section])
    for (const [key, count] of found) t.equal(count, wanted.get(key), `${section} ${key}`)
    const lost = [...wanted.keys()].filter((key) => !found.has(key))
    const isCourtesy = (key: string): boolean => isPositive && key.endsWith(' ns')
    if (section === 'answer') isIncomplete ||= lost.length > 0
    if (section === 'authority') isIncomplete ||= lost.some((key) => !isCourtesy(key))
    // Glue of a referral.
    if (section === 'additional') isIncomplete ||= !whole.flags.includes('aa') && lost.length > 0
  }
  t.equal(isTruncated, isIncomplete, 'TC')
  if (isTruncated) t.strictSame(reply.additional, [], 'nothing after the cut')
  t.match(reply.text, /OPT PSEUDOSECTION/)
  t.match(reply.text, /; QUERY: 1,/)
  t.match(reply.text, /QUESTION SECTION:/)
  const received = Number(/MSG SIZE +rcvd: (\d+)/.exec(reply.text)?.[1])
  t.ok(received <= octets, `${received} octets`)
  const header = ({ status, flags }: Reply) => [status, ...flags.filter((flag) => flag !== 'tc')]
  t.strictSame(header(reply), header(whole), 'the header')
  return isTruncated
}

t.test('long signed replies over UDP', needs('dig', 'unbound'), async (t) => {
  const zones = Object.keys(ROWS).map((row, i) => [row, `z${i}.example`] as const)
  const blocks = zones.map(([row, zone]) => {
    const { dnssec = '', lines } = ROWS[row]!
    return `${zone}:{PORT} {
  bind 127.0.0.1
  bufsize 4096
  dnssec {
   keys keys-${zone}
   ${dnssec}
   signatures_per_second 10000 10000
  }
  ${lines(zone).replaceAll('records', `records-${zone}`)}
}
`
  })
  const { port, directory } = await startServer(t, {
    corefile: blocks.join(''),
    files: {
      db: FILE,
      ...Object.fromEntries(zones.map(([, zone]) => [`records-${zone}/big.json`, manifest(zone)])),
    },
  })
  for (const [row, zone] of zones) {
    await t.test(row, async (t) => {
      let truncated = 0
      const questions = [...QUESTIONS, ...(ROWS[row]!.questions ?? [])].map((question) => {
        const [name = '', type = ''] = question.split(' ')
        return [name === '@' ? zone : `${name}.${zone}`, type]
      })
      for (const question of questions) {
        const asked = SIZES.map((octets) => {
          return [...question, '+notcp', '+ignore', `+bufsize=${octets}`]
        })
        const replies = await askEach(port, ['+dnssec'], [[...question, '+tcp'], ...asked])
        const [whole, ...others] = replies as [Reply, ...Reply[]]
        t.notOk(whole.flags.includes('tc'), `${question}: whole over TCP`)
        for (const [i, octets] of SIZES.entries()) {
          await t.test(`${question.join(' ')} in ${octets}`, async (t) => {
            if (check(t, others[i]!, whole, octets)) truncated++
          })
        }
      }
      t.ok(truncated > 10, `${truncated} were truncated`)
      const key = readKey(join(directory, `keys-${zone}`))
      const options = { key, zones: { [zone]: [port] }, reuses: 'nothing' } as const
      const unbound = await startUnboundResolver(t, { ...options, payloadOctets: 512 })
      const isBelowCut = ([name]: readonly string[]): boolean => / *cut\./.test(name!)
      const resolved = questions.filter((question) => !isBelowCut(question))
      const replies = await askEach(unbound.port, ['+dnssec', '+rec', '+tcp'], resolved)
      for (const [i, { flags }] of replies.entries()) {
        t.ok(flags.includes('ad'), `${resolved[i]!.join(' ')}: Unbound with 512 octets`)
      }
    })
  }
})
