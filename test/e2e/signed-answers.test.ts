import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { askEach, type Reply } from '../support/dig.ts'
import { startPeer } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { type SigningOptions, signZone } from '../support/signed-zone.ts'

/*
 * Our answers from signed zones beside those of Knot and NSD from the same file: rcode, AA, AD and the sections as sets
 * are the same. Where the two differ from each other, ours are those of one of them.
 */

const LONG = 'x'.repeat(60)
const LONG_DNAME = `${LONG}.longdn A`

const ZONE = `
$TTL 600
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
MiXed TXT "case"
a.b.ent A 192.0.2.6
*.wild A 192.0.2.7
*.wild MX 5 mail
host.wild A 192.0.2.8
alias CNAME www
*.cwild CNAME www
chain CNAME x.cwild
out CNAME www.elsewhere.example.
dead CNAME nope
deadwild CNAME nope.host.wild
tochild CNAME www.secure
dn DNAME target
www.target A 192.0.2.9
longdn DNAME ${LONG}.${LONG}.${LONG}.target
secure NS ns.secure
secure DS 12345 13 2 0000000000000000000000000000000000000000000000000000000000000000
ns.secure A 192.0.2.10
insecure NS ns.insecure
ns.insecure A 192.0.2.11
deep.er NS ns.insecure
x.*.went A 192.0.2.12
_sip._tcp SRV 0 5 5060 mail
`

const QUESTIONS = [
  '@ A',
  '@ MX',
  '@ SOA',
  '@ NS',
  '@ DNSKEY',
  '@ NSEC3PARAM',
  '@ DS',
  '@ TXT',
  '@ NSEC',
  'www A',
  'WWW A',
  'www AAAA',
  'www DS',
  'www NSEC',
  'mixed TXT',
  'mixed A',
  'nope A',
  '0.nope A',
  'zzzz A',
  '\\000 A',
  '\\255 A',
  'nope.www A',
  'a.nope.www TXT',
  'ent A',
  'b.ent TXT',
  'c.ent A',
  'c.b.ent A',
  'c.a.b.ent A',
  'any.wild A',
  'some.any.wild A',
  'any.wild TXT',
  'any.wild MX',
  'any.wild DS',
  '*.wild A',
  '*.wild TXT',
  'wild A',
  'host.wild TXT',
  'host.wild A',
  'nope.host.wild A',
  'alias A',
  'alias CNAME',
  'alias TXT',
  'x.cwild A',
  'x.cwild AAAA',
  'x.cwild CNAME',
  'chain A',
  'chain TXT',
  'out A',
  'dead A',
  'deadwild A',
  'tochild A',
  'dn DNAME',
  'dn A',
  'www.dn A',
  'nope.dn A',
  'x.y.dn A',
  'www.dn CNAME',
  LONG_DNAME,
  'secure A',
  'secure NS',
  'secure DS',
  'www.secure A',
  'www.secure DS',
  'insecure A',
  'insecure DS',
  'ns.insecure A',
  'www.insecure A',
  'deep.er A',
  'deep.er DS',
  'a.deep.er A',
  'er A',
  'er DS',
  'other.er A',
  'a.other.er A',
  'went A',
  'a.went A',
  '*.went A',
  'x.a.went A',
  '_sip._tcp SRV',
  '_tcp SRV',
  '_udp SRV',
  // The longest name, with the most labels; one with the longest labels; the longest below a wildcard.
  `${'c.'.repeat(120)}www A`,
  `${`${'d'.repeat(63)}.`.repeat(3)}${'e'.repeat(47)}.www A`,
  `${'f.'.repeat(118)}ff.wild A`,
  `${'f.'.repeat(118)}ff.wild TXT`,
]

/** Each kind of reply; most do not fit 512 octets. */
const CUT_QUESTIONS = ['dead A', 'nope.www A', 'nope.wild TXT', 'insecure A', '@ DNSKEY']

/** Chains, and the questions that Knot or NSD answer in another way than we and the other one do. */
const CHAINS: readonly {
  readonly name: string
  readonly options: Omit<SigningOptions, 'text'>
  readonly others: Readonly<Record<string, 'knotd' | 'nsd'>>
}[] = [
  {
    name: 'NSEC, ECDSA',
    options: { zone: 's.example', algorithm: 'ECDSAP256SHA256' },
    others: {
      // NSD leaves out what proves that the target of the DNAME has no closer match.
      'x.y.dn A': 'nsd',
      // Knot answers NXDOMAIN instead of YXDOMAIN.
      [LONG_DNAME]: 'knotd',
      // Knot does not prove that the wildcard is an empty non-terminal.
      'a.went A': 'knotd',
      'x.a.went A': 'knotd',
    },
  },
  {
    name: 'NSEC3 with salt and iterations, ECDSA',
    options: {
      zone: 's.example',
      algorithm: 'ECDSAP256SHA256',
      nsec3: { salt: 'AABBCC', iterations: 5, optOut: false },
    },
    others: {
      // NSD proves the closest encloser of a wildcard that was asked for by its name, which exists.
      '*.wild TXT': 'nsd',
      '*.went A': 'nsd',
      [LONG_DNAME]: 'knotd',
    },
  },
  {
    name: 'NSEC3 with opt-out, RSA',
    options: {
      zone: 's.example',
      algorithm: 'RSASHA256',
      nsec3: { salt: '-', iterations: 0, optOut: true },
    },
    others: {
      '*.wild TXT': 'nsd',
      '*.went A': 'nsd',
      [LONG_DNAME]: 'knotd',
      // Names that only unsigned delegations have made own no NSEC3: NSD proves them as if they did.
      'er DS': 'nsd',
      'other.er A': 'nsd',
      'a.other.er A': 'nsd',
    },
  },
]

/** What must be the same: the rest of a reply is up to the server. */
function essence(reply: Reply): string[] {
  const { status, flags, answer } = reply
  const lines = [
    `${status} ${flags.includes('aa')} ${flags.includes('ad')}`,
    ...answer,
    '--',
    ...neededAuthority(reply),
  ]
  return lines.map((line) => line.toLowerCase())
}

/** The authority section without the name servers of the zone, which are a courtesy beside an answer. */
function neededAuthority({ answer, authority }: Reply): readonly string[] {
  if (answer.length === 0) return authority
  return authority.filter((line) => !/ (RRSIG )?NS /.test(line))
}

async function compare(
  t: Test,
  { options, others }: (typeof CHAINS)[number],
  args: readonly string[],
): Promise<void> {
  const { zone } = options
  const directory = mkdtempSync(join(tmpdir(), 'sextant-signed-'))
  t.teardown(() => rmSync(directory, { recursive: true }))
  const { text } = await signZone(directory, { ...options, text: ZONE })
  const corefile = `${zone}:{PORT} {\n  bind 127.0.0.1\n  file db\n}\n`
  const ours = await startServer(t, { corefile, files: { db: text } })
  const peer = { zone, port: ours.port, signed: false, zoneText: text }
  const knot = await startPeer(t, 'knotd', peer)
  const nsd = await startPeer(t, 'nsd', peer)
  const questions = QUESTIONS.map((line) => {
    const [name = '', type = ''] = line.split(' ')
    return [name === '@' ? `${zone}.` : `${name}.${zone}.`, type]
  })
  const replies = await Promise.all(
    [ours, knot, nsd].map(({ port }) => askEach(port, args, questions)),
  )
  for (const [i, question] of QUESTIONS.entries()) {
    const [own, ofKnot, ofNsd] = replies.map((each) => essence(each[i]!))
    const found = own!
    const other = others[question]
    const isSigned = args.includes('+dnssec')
    if (!isSigned || other !== 'knotd') t.same(found, ofKnot!, `${question}: as Knot`)
    if (!isSigned || other !== 'nsd') t.same(found, ofNsd!, `${question}: as NSD`)
    if (isSigned && other !== undefined) {
      const differing = (other === 'nsd' ? ofNsd : ofKnot)!
      t.not(found.join(), differing.join(), `${question}: not as ${other}`)
    }
  }
  let cut = 0
  for (const question of CUT_QUESTIONS) {
    const [name = '', type = ''] = question.split(' ')
    cut += await truncate(t, ours.port, [name === '@' ? zone : `${name}.${zone}`, type])
  }
  t.ok(cut > 0, 'replies were cut')
}

/** Replies that are cut say so, and never separate an RRset from its signatures. Returns how many were cut. */
async function truncate(t: Test, port: number, question: readonly string[]): Promise<number> {
  const sizes = [512, 692, 872, 1052, 1232]
  const [whole, ...replies] = (await askEach(
    port,
    ['+dnssec'],
    [
      [...question, '+tcp'],
      ...sizes.map((octets) => [...question, '+notcp', '+ignore', `+bufsize=${octets}`]),
    ],
  )) as [Reply, ...Reply[]]
  t.notOk(whole.flags.includes('tc'), `${question}: whole over TCP`)
  const needed = [...whole.answer, ...neededAuthority(whole)]
  let cut = 0
  for (const [i, octets] of sizes.entries()) {
    const reply = replies[i]!
    const left = [...reply.answer, ...neededAuthority(reply)]
    const isCut = left.length < needed.length
    if (isCut) cut++
    t.equal(reply.flags.includes('tc'), isCut, `${question}: TC with ${octets} octets`)
    const unknown = left.filter((line) => !needed.includes(line))
    t.same(unknown, [], `${question}: no other records with ${octets} octets`)
    const halves = left.filter((line) => mates(left, line) !== mates(needed, line))
    t.same(halves, [], `${question}: whole RRsets with ${octets} octets`)
  }
  return cut
}

/** The number of lines of the RRset that a line is of, and of its signatures. */
function mates(lines: readonly string[], line: string): number {
  const rrset = (text: string): string => {
    const [owner, , , type, covered] = text.split(' ')
    return `${owner} ${type === 'RRSIG' ? covered : type}`
  }
  return lines.filter((other) => rrset(other) === rrset(line)).length
}

const tools = needs('dig', 'knotd', 'nsd', 'dnssec-keygen', 'dnssec-signzone')
for (const chain of CHAINS) {
  t.test(`answers are those of Knot and NSD: ${chain.name}`, tools, async (t) => {
    await compare(t, chain, ['+dnssec', '+bufsize=4096'])
  })
}
