import { join } from 'node:path'
import t, { type Test } from 'tap'
import { UdpClient } from '../support/client.ts'
import { askEach, type Reply } from '../support/dig.ts'
import { probeManifest } from '../support/manifest.ts'
import { needs } from '../support/peer.ts'
import { startServer } from '../support/server.ts'
import { readMessage } from '../support/wire.ts'
import { Delv, readKey } from './delv.ts'
import { startNamedResolver, startUnboundResolver } from './resolvers.ts'

// Long: it starts servers, and delv for each question.

/*
 * Compact denial (RFC 9824) of a zone that is signed in its image, and of one that is signed on demand. Unbound and
 * BIND reuse proofs for other questions (RFC 8198), so each proof must be true for all types that it lacks.
 */

const Kind = {
  Answer: 'answer',
  /** The name exists. */
  NoData: 'no data',
  NoName: 'no name',
  /** The name exists, and the server knows that it has no records. */
  Empty: 'empty name',
  /** NSEC, RRSIG and ANY of a name that has no records of its own: its NSEC record, or the signature of that. */
  Proof: 'proof',
} as const
type Kind = (typeof Kind)[keyof typeof Kind]
type Questions = readonly (readonly [question: string, kind: Kind])[]

function endpoint(name: string, type: string, target: string, code?: string, weight?: string) {
  const values = Object.entries({ 'geo-code': code, weight })
  return {
    dnsName: `${name}.s.example`,
    recordType: type,
    recordTTL: 60,
    targets: [target],
    setIdentifier: target,
    providerSpecific: values.flatMap(([key, value]) =>
      value === undefined ? [] : [{ name: key, value }],
    ),
  }
}

function manifest(name: string, endpoints: readonly object[], annotations: object = {}): string {
  return `---\n${JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name, namespace: 'default', annotations },
    spec: { rootHost: 's.example', endpoints },
  })}\n`
}

/** The resolvers are clients that no code matches, and get nothing for `part`: 192.0.2.8 is down. */
const MANIFESTS =
  manifest('app', [
    endpoint('geo', 'A', '192.0.2.1', 'US', '100'),
    endpoint('geo', 'A', '192.0.2.2', 'US', '50'),
    endpoint('geo', 'A', '192.0.2.3', 'DE', '100'),
    endpoint('geo', 'A', '192.0.2.9', '*'),
    endpoint('*.wild', 'A', '192.0.2.3', 'DE', '100'),
    endpoint('*.wild', 'A', '192.0.2.9', '*'),
    endpoint('*.cwild', 'CNAME', 'geo.s.example'),
    endpoint('www', 'CNAME', 'x.cwild.s.example'),
    endpoint('empty', 'CNAME', 'part.s.example'),
    endpoint('a.b.ent', 'TXT', 'text'),
  ]) +
  manifest(
    'part',
    [
      endpoint('part', 'A', '192.0.2.7', 'US'),
      endpoint('part', 'A', '192.0.2.8', 'DE'),
      endpoint('*.part', 'A', '192.0.2.7', 'US'),
      endpoint('*.part', 'A', '192.0.2.8', 'DE'),
      endpoint('part', 'TXT', 'text'),
    ],
    { 'sextant.io/all-down': 'closed', 'sextant.io/failover': 'US: 192.0.2.7\n*: 192.0.2.8' },
  ) +
  probeManifest('part', '192.0.2.8', false)

/** Types of one name, and their rdata. */
const MANY: Readonly<Record<string, string>> = {
  TYPE65280: '\\# 1 00',
  TYPE65534: '\\# 1 00',
  TYPE500: '\\# 1 00',
  DLV: `1 13 2 ${'00'.repeat(32)}`,
  NULL: '\\# 1 00',
  CAA: '0 issue \\";\\"',
}

function ofMany(type: string): string {
  return `template IN ${type} s.example {
    match ^many\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN ${type} ${MANY[type]}"
    fallthrough
  }`
}

const HOSTS = `hosts {
    192.0.2.1 www.s.example
    192.0.2.2 *.wild.s.example
    192.0.2.3 dn.s.example
    192.0.2.4 many.s.example
  }
  template IN DNAME s.example {
    match ^dn\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN DNAME wild.s.example."
    fallthrough
  }
  template IN ANY s.example {
    match ^(?P<label>[a-z]+)\\.dn\\.s\\.example\\.$
    answer "dn.s.example. 60 IN DNAME wild.s.example."
    answer "{{ .Name }} 60 IN CNAME {{ .Group.label }}.wild.s.example."
    fallthrough
  }
  ${Object.keys(MANY).map(ofMany).join('\n  ')}
  template IN ANY s.example {
    match nope
    rcode NXDOMAIN
    authority "s.example. 60 IN SOA ns.s.example. hostmaster.s.example. 1 7200 1800 86400 30"
    fallthrough
  }`

const ROWS: Readonly<Record<string, { readonly lines: string; readonly questions: Questions }>> = {
  'a zone of DNSRecords': {
    lines: 'kuadrant {\n manifests zones\n }',
    questions: [
      ['geo NSEC', Kind.Proof],
      ['geo RRSIG', Kind.Answer],
      ['geo ANY', Kind.Answer],
      ['geo AAAA', Kind.NoData],
      ['geo DS', Kind.NoData],
      ['geo A', Kind.Answer],
      ['www NSEC', Kind.Proof],
      ['www CNAME', Kind.Answer],
      ['www A', Kind.Answer],
      ['www AAAA', Kind.Answer],
      ['x.cwild RRSIG', Kind.Proof],
      ['x.cwild DS', Kind.Answer],
      ['x.cwild CNAME', Kind.Answer],
      ['any.wild RRSIG', Kind.Proof],
      ['any.wild NSEC', Kind.Proof],
      ['any.wild ANY', Kind.Answer],
      ['any.wild TXT', Kind.NoData],
      ['any.wild DS', Kind.NoData],
      ['any.wild A', Kind.Answer],
      ['*.wild A', Kind.Answer],
      ['wild A', Kind.Empty],
      ['part A', Kind.NoData],
      ['part AAAA', Kind.NoData],
      ['part ANY', Kind.Answer],
      ['part TXT', Kind.Answer],
      ['x.part A', Kind.NoData],
      ['x.part ANY', Kind.Proof],
      ['empty A', Kind.Answer],
      ['b.ent ANY', Kind.Proof],
      ['b.ent RRSIG', Kind.Proof],
      ['b.ent A', Kind.Empty],
      ['b.ent DS', Kind.Empty],
      ['ent A', Kind.Empty],
      ['a.b.ent CDNSKEY', Kind.NoData],
      ['a.b.ent TXT', Kind.Answer],
      ['nope RRSIG', Kind.Proof],
      ['nope NSEC', Kind.Proof],
      ['nope ANY', Kind.NoName],
      ['nope A', Kind.NoName],
      ['nope DS', Kind.NoName],
      ['a.nope A', Kind.NoName],
      ['nope.geo A', Kind.NoName],
      ['* A', Kind.NoName],
      ['@ NSEC', Kind.Proof],
      ['@ RRSIG', Kind.Answer],
      ['@ ANY', Kind.Answer],
      ['@ A', Kind.NoData],
      ['@ SOA', Kind.Answer],
      ['@ DNSKEY', Kind.Answer],
    ],
  },
  'names in a zone of DNSRecords and elsewhere': {
    lines: `template IN TXT s.example {
    match ^ent\\.s\\.example\\.$
    answer "{{ .Name }} 60 IN TXT text"
    fallthrough
  }
  kuadrant {\n manifests zones\n }`,
    questions: [
      ['ent A', Kind.NoData],
      ['ent TXT', Kind.Answer],
      ['b.ent A', Kind.NoData],
      ['ent MX', Kind.NoData],
    ],
  },
  'names that are signed on demand': {
    lines: HOSTS,
    questions: [
      ['www ANY', Kind.Proof],
      ['www NSEC', Kind.Proof],
      ['www RRSIG', Kind.Proof],
      ['www AAAA', Kind.NoData],
      ['www A', Kind.Answer],
      ['any.wild ANY', Kind.Proof],
      ['any.wild RRSIG', Kind.Proof],
      ['any.wild DS', Kind.NoData],
      ['any.wild A', Kind.Answer],
      ['dn TXT', Kind.NoData],
      ['dn DNAME', Kind.Answer],
      ['dn A', Kind.Answer],
      ['x.dn A', Kind.Answer],
      ['dn MX', Kind.NoData],
      ['many TXT', Kind.NoData],
      ['many TYPE65280', Kind.Answer],
      ['many TYPE65534', Kind.Answer],
      ['many TYPE500', Kind.Answer],
      ['many DLV', Kind.Answer],
      ['many NULL', Kind.Answer],
      ['many CAA', Kind.Answer],
      ['many TYPE65281', Kind.NoData],
      ['nope RRSIG', Kind.Proof],
      ['nope ANY', Kind.NoName],
      ['nope A', Kind.NoName],
      ['@ DNSKEY', Kind.Answer],
    ],
  },
}

const tools = needs('dig', 'delv', 'unbound', 'named')
for (const [name, { lines, questions }] of Object.entries(ROWS)) {
  t.test(name, tools, async (t) => {
    const { port, directory } = await startServer(t, {
      corefile: `s.example:{PORT} {
 bind 127.0.0.1
 geoip {
  net 127.0.0.2/32 US
  net 127.0.0.3/32 DE
 }
 dnssec {
  keys keys
  denial compact
 }
 ${lines}
}
`,
      files: { 'zones/app.yaml': MANIFESTS },
    })
    const key = readKey(join(directory, 'keys'))
    const asked = questions.map(([question]) => wordsOf(question))
    const direct = await askEach(port, ['+dnssec'], asked)
    for (const [i, reply] of direct.entries()) checkServer(t, reply, ...questions[i]!)
    await checkCompactOk(t, port, questions)
    const delv = new Delv(port, directory, key)
    // What delv says of signatures is not about them.
    const validated = asked.filter(([, type]) => type !== 'RRSIG')
    for (const words of validated) await delv.expect(t, words.join(' '), 'NOERROR', true)
    const options = { key, zones: { 's.example': [port] }, reuses: 'proofs' } as const
    for (const order of [questions, questions.toReversed()]) {
      for (const start of [startUnboundResolver, startNamedResolver]) {
        const resolver = await start(t, options)
        const words = order.map(([question]) => wordsOf(question))
        const replies = await askEach(resolver.port, ['+dnssec', '+rec'], words)
        for (const [i, reply] of replies.entries())
          checkResolver(t, resolver.name, reply, ...order[i]!)
      }
    }
  })
}

function wordsOf(question: string): readonly [name: string, type: string] {
  const [name = '', type = ''] = question.split(' ')
  return [name === '@' ? 's.example' : `${name}.s.example`, type]
}

function checkServer(t: Test, reply: Reply, question: string, kind: Kind): void {
  const [, type] = wordsOf(question)
  t.equal(reply.status, 'NOERROR', `${question}: rcode`)
  const isAnswered = kind === Kind.Answer || kind === Kind.Proof
  t.equal(reply.answer.length > 0, isAnswered, `${question}: ${reply.answer.join('; ')}`)
  const proofs = reply.authority.filter((line) => / NSEC \\000\./.test(line))
  if (isAnswered) return
  t.equal(proofs.length, 1, `${question}: one proof`)
  const types = proofs.join().replace(/^.* NSEC \S+ /, '')
  if (kind === Kind.Empty) t.equal(types, 'RRSIG NSEC', question)
  else if (kind === Kind.NoName) t.match(types, /^RRSIG NSEC (NXNAME|TYPE128)$/, question)
  else t.notOk(types.split(' ').includes(type), question)
  t.equal(/NXNAME|TYPE128/.test(types), kind === Kind.NoName, `${question}: ${types}`)
}

/** A client that sets CO gets NXDOMAIN for a name that does not exist. */
async function checkCompactOk(t: Test, port: number, questions: Questions): Promise<void> {
  const client = await UdpClient.connect(port)
  for (const [question, kind] of questions) {
    const [name, type] = wordsOf(question)
    const reply = readMessage(await client.ask({ name, type, dnssecOk: true, compactOk: true }))
    const isMissing = kind === Kind.NoName || name === 'nope.s.example'
    t.equal(reply.rcode, isMissing ? 3 : 0, `${question}: rcode with CO`)
    t.equal(reply.opt?.ttl, 0xc000, `${question}: CO of the reply`)
    if (isMissing) t.equal(reply.answer.length, 0, `${question}: no answer with NXDOMAIN`)
  }
  client.close()
}

function checkResolver(t: Test, who: string, reply: Reply, question: string, kind: Kind): void {
  const [, type] = wordsOf(question)
  t.equal(reply.status, 'NOERROR', `${who}: ${question}: rcode`)
  // Signatures alone are not validated.
  if (type !== 'RRSIG') t.ok(reply.flags.includes('ad'), `${who}: ${question}: AD`)
  // These are also answered from what is cached for other questions.
  if (['ANY', 'NSEC', 'RRSIG'].includes(type)) return
  const isAnswered = kind === Kind.Answer || kind === Kind.Proof
  t.equal(reply.answer.length > 0, isAnswered, `${who}: ${question}: ${reply.answer.join('; ')}`)
}
