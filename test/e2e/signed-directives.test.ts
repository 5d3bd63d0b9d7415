import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { askEach, type Reply } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { type SigningOptions, signZone } from '../support/signed-zone.ts'

/*
 * A signed zone behind each directive that changes replies, and out of each directive that serves zones: answers to
 * queries with DO are those of `file` alone. What a directive changes on purpose, its row states.
 */

const ZONE = `$TTL 600
@ SOA ns1 hostmaster 1 3600 600 86400 300
@ NS ns1
@ NS ns2
@ MX 10 mail
ns1 A 192.0.2.1
ns2 A 192.0.2.2
mail A 192.0.2.3
mail AAAA 2001:db8::3
www A 192.0.2.4
www A 192.0.2.5
*.wild A 192.0.2.7
*.cwild CNAME www
dn DNAME target
www.target A 192.0.2.9
secure NS ns.secure
secure DS 12345 13 2 0000000000000000000000000000000000000000000000000000000000000000
ns.secure A 192.0.2.10
insecure NS ns.insecure
ns.insecure A 192.0.2.11
x.*.er NS ns.insecure
localhost A 192.0.2.12
_443._tcp TLSA 3 1 1 0000000000000000000000000000000000000000000000000000000000000000
`

const QUESTIONS = [
  '@ DNSKEY',
  '@ MX',
  '@ DS',
  'www A',
  'www ANY',
  'www TXT',
  'nope A',
  'nope ANY',
  'any.wild A',
  'any.wild TXT',
  'x.cwild A',
  'www.dn A',
  'nope.dn A',
  'secure DS',
  'www.secure A',
  'insecure DS',
  'www.insecure A',
  'q.er A',
  'er TXT',
  'localhost A',
  '_443._tcp TLSA',
  '_443._tcp ANY',
]

interface Row {
  /** Lines before the one that serves the zone. */
  readonly before?: string
  /** The line that serves the zone; default: `file db`. */
  readonly serving?: string
  /** Whether the NS RRset of the zone is left out of positive answers. */
  readonly dropsCourtesy?: boolean
  /** Questions that the directive answers itself: rcode and first record of the answer. */
  readonly own?: Readonly<Record<string, RegExp>>
}

const ROWS: Readonly<Record<string, Row>> = {
  acl: { before: 'acl {\n allow net 127.0.0.1\n block\n }' },
  'acl filter': {
    before: 'acl {\n filter type TXT\n }',
    own: { 'www TXT': /^NOERROR $/, 'any.wild TXT': /^NOERROR $/, 'er TXT': /^NOERROR $/ },
  },
  header: { before: 'header {\n response set ra\n query clear rd\n }' },
  rrl: { before: 'rrl {\n responses-per-second 10000\n }' },
  minimal: { before: 'minimal', dropsCourtesy: true },
  any: { before: 'any' },
  'loadbalance round_robin': { before: 'loadbalance' },
  'loadbalance weighted': { before: 'loadbalance weighted weights' },
  local: { before: 'local', own: { 'localhost A': /^NOERROR .* A 127\.0\.0\.1$/ } },
  'local without prefix': { before: 'local {\n localhost_prefix off\n }' },
  auto: { serving: 'auto {\n directory zones\n }' },
  secondary: { serving: 'secondary {\n transfer from 127.0.0.1:{PORT}\n }' },
  all: {
    before:
      'rrl {\n responses-per-second 10000\n }\n any\n loadbalance\n minimal\n header {\n response set ra\n }',
    dropsCourtesy: true,
  },
}

function sectionsOf(reply: Reply, dropsCourtesy: boolean): string[] {
  const { status, flags, answer, authority } = reply
  const isPositive = answer.length > 0
  const left = authority.filter((line) => {
    const [, , , type, covered] = line.split(' ')
    const isCourtesy = flags.includes('aa') && (type === 'RRSIG' ? covered : type) === 'NS'
    return !(dropsCourtesy && isPositive && isCourtesy)
  })
  return [status, String(flags.includes('aa')), ...answer, '--', ...left].map((line) => {
    return line.toLowerCase()
  })
}

/** RRsets of answer and authority that have no signature and should. */
function unsignedOf({ answer, authority, flags }: Reply): string[] {
  const isReferral = !flags.includes('aa')
  return [answer, authority].flatMap((lines) => {
    const signed = new Set<string>()
    for (const line of lines) {
      const [owner, , , type, covered] = line.split(' ')
      if (type === 'RRSIG') signed.add(`${owner} ${covered}`)
    }
    const isMade = (line: string): boolean =>
      / CNAME /.test(line) && /\.dn\.s\.example\. /.test(line)
    return lines.filter((line) => {
      const [owner, , , type] = line.split(' ')
      if (type === 'RRSIG' || isMade(line) || (isReferral && type === 'NS')) return false
      return !signed.has(`${owner} ${type}`)
    })
  })
}

async function compare(t: Test, options: Omit<SigningOptions, 'text'>): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-directives-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const { text } = await signZone(directory, { ...options, text: ZONE })
  const ports = new Map<string, number>()
  for (const name of Object.keys(ROWS)) ports.set(name, await freePort())
  const block = (port: number | string, lines: string): string => {
    return `s.example:${port} {\n bind 127.0.0.1\n ${lines}\n}\n`
  }
  const blocks = Object.entries(ROWS).map(([name, { before = '', serving = 'file db' }]) => {
    return block(ports.get(name)!, `${before}\n ${serving}`)
  })
  const corefile = block('{PORT}', 'transfer {\n to *\n }\n file db') + blocks.join('')
  const files = { db: text, 'zones/db.s.example': text, weights: 'www.s.example\n192.0.2.4 3\n' }
  const server = await startServer(t, { corefile, files })
  await server.prints(/transferred \(AXFR\)/)
  const questions = QUESTIONS.map((question) => {
    const [name = '', type = ''] = question.split(' ')
    return [name === '@' ? 's.example' : `${name}.s.example`, type]
  })
  const asked = (port: number): Promise<Reply[]> => {
    return askEach(port, ['+dnssec', '+bufsize=4096'], questions)
  }
  const repliesAlone = await asked(server.port)
  const repliesOfRows = await Promise.all(Object.keys(ROWS).map((row) => asked(ports.get(row)!)))
  for (const [n, question] of QUESTIONS.entries()) {
    const type = questions[n]![1]
    const alone = repliesAlone[n]!
    t.same(unsignedOf(alone), [], `${question}: all is signed`)
    if (type === 'ANY' && alone.status === 'NOERROR') {
      t.ok(
        alone.answer.some((line) => !/ (RRSIG|NSEC) /.test(line)),
        `${question}: has data`,
      )
    }
    for (const [i, [row, { own = {}, dropsCourtesy = false }]] of Object.entries(ROWS).entries()) {
      const reply = repliesOfRows[i]![n]!
      const wanted = own[question]
      if (wanted !== undefined) t.match(`${reply.status} ${reply.answer[0] ?? ''}`, wanted, row)
      else {
        const want = sectionsOf(alone, dropsCourtesy)
        t.same(sectionsOf(reply, false), want, `${question}: ${row}`)
      }
    }
  }
}

const tools = needs('dig', 'dnssec-keygen', 'dnssec-signzone')
const zone = { zone: 's.example', algorithm: 'ECDSAP256SHA256' } as const
t.test('signed answers stay whole: NSEC', tools, (t) => compare(t, zone))
t.test('signed answers stay whole: NSEC3 with opt-out', tools, (t) => {
  return compare(t, { ...zone, nsec3: { salt: '-', iterations: 0, optOut: true } })
})
