import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ask, askEach } from '../support/dig.ts'
import { startPeer } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { type SignedZone, type SigningOptions, signZone } from '../support/signed-zone.ts'
import { Delv } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'

// Long: it starts many servers.

/*
 * Every kind of answer of a signed zone, validated by delv and by Unbound: parent, signed child and unsigned child are
 * ours. Then by delv once more with the parent followed by `secondary`: after the AXFR, and after an IXFR.
 */

const SOA =
  '@ 600 SOA ns1.s.example. hostmaster.s.example. 1 3600 600 86400 300\n@ 600 NS ns1.s.example.\n'

const PARENT = `${SOA}$TTL 600
ns1 A 127.0.0.1
www A 192.0.2.4
a.b.ent A 192.0.2.6
*.wild A 192.0.2.7
alias CNAME www
*.cwild CNAME www
dn DNAME target
www.target A 192.0.2.9
secure NS ns1
insecure NS ns1
deep.er NS ns1
*.open A 192.0.2.10
deep.er.open NS ns1
`
const CHILD = `${SOA}www 600 A 192.0.2.20\n`

/** Question, rcode, and whether validation is possible: below an unsigned delegation it is not. */
const QUESTIONS: readonly [question: string, rcode: string, isSecure: boolean][] = [
  ['www.s.example A', 'NOERROR', true],
  ['s.example DNSKEY', 'NOERROR', true],
  ['www.s.example TXT', 'NOERROR', true],
  ['www.s.example ANY', 'NOERROR', true],
  ['nope.s.example A', 'NXDOMAIN', true],
  ['nope.www.s.example A', 'NXDOMAIN', true],
  ['b.ent.s.example A', 'NOERROR', true],
  ['ent.s.example A', 'NOERROR', true],
  ['any.wild.s.example A', 'NOERROR', true],
  ['some.any.wild.s.example A', 'NOERROR', true],
  ['any.wild.s.example TXT', 'NOERROR', true],
  ['alias.s.example A', 'NOERROR', true],
  ['x.cwild.s.example A', 'NOERROR', true],
  ['dn.s.example DNAME', 'NOERROR', true],
  ['www.dn.s.example A', 'NOERROR', true],
  ['nope.dn.s.example A', 'NXDOMAIN', true],
  ['secure.s.example DS', 'NOERROR', true],
  ['www.secure.s.example A', 'NOERROR', true],
  ['nope.secure.s.example A', 'NXDOMAIN', true],
  ['insecure.s.example DS', 'NOERROR', true],
  ['www.insecure.s.example A', 'NOERROR', false],
  ['deep.er.s.example DS', 'NOERROR', true],
  ['er.open.s.example A', 'NOERROR', true],
  ['er.open.s.example DS', 'NOERROR', true],
  ['other.er.open.s.example A', 'NXDOMAIN', true],
  ['a.other.er.open.s.example TXT', 'NXDOMAIN', true],
]

/**
 * What an opt-out record proves has no AD (RFC 5155 section 9.2). Delv takes answers from wildcards for unsigned, and what
 * has no proof: a wildcard that has one would stand for the name if no unsigned delegation had made its encloser.
 */
const OPTED_OUT_OF_DELV = [
  'any.wild.s.example A',
  'some.any.wild.s.example A',
  'other.er.open.s.example A',
  'a.other.er.open.s.example TXT',
]
const OPTED_OUT = new Set([
  'nope.s.example A',
  'nope.www.s.example A',
  ...OPTED_OUT_OF_DELV,
  'any.wild.s.example TXT',
  'x.cwild.s.example A',
  'nope.dn.s.example A',
  'nope.secure.s.example A',
  'insecure.s.example DS',
  'deep.er.s.example DS',
  'er.open.s.example A',
  'er.open.s.example DS',
])

/** The parent after a change, and questions about what is new, gone and next to that. */
const CHANGED = PARENT.replace('hostmaster.s.example. 1 ', 'hostmaster.s.example. 2 ')
  .replace('alias CNAME www\n', 'new A 192.0.2.30\n')
  .replace('a.b.ent A 192.0.2.6', 'zz.b.ent A 192.0.2.6')
const QUESTIONS_AFTER: typeof QUESTIONS = [
  ...QUESTIONS.filter(([question]) => !question.startsWith('alias.')),
  ['alias.s.example A', 'NXDOMAIN', true],
  ['a.b.ent.s.example A', 'NXDOMAIN', true],
  ['zz.b.ent.s.example A', 'NOERROR', true],
  ['new.s.example A', 'NOERROR', true],
  ['new.s.example TXT', 'NOERROR', true],
  ['nex.s.example A', 'NXDOMAIN', true],
]

type Signing = Pick<SigningOptions, 'algorithm' | 'nsec3'>
const SIGNINGS: readonly { readonly name: string; readonly signing: Signing }[] = [
  { name: 'NSEC, RSA', signing: { algorithm: 'RSASHA256' } },
  {
    name: 'NSEC3, ECDSA',
    signing: {
      algorithm: 'ECDSAP256SHA256',
      nsec3: { salt: 'AABB', iterations: 3, optOut: false },
    },
  },
  {
    name: 'NSEC3 with opt-out, ECDSA',
    signing: { algorithm: 'ECDSAP256SHA256', nsec3: { salt: '-', iterations: 0, optOut: true } },
  },
]

const tools = needs('dig', 'delv', 'unbound', 'nsd', 'dnssec-keygen', 'dnssec-signzone')
for (const { name, signing } of SIGNINGS) {
  t.test(`delv and Unbound validate every kind of answer: ${name}`, tools, async (t) => {
    const directory = temporary(t)
    const child = await signZone(join(directory, 'child'), {
      ...signing,
      zone: 'secure.s.example',
      text: CHILD,
    })
    const text = PARENT + child.ds
    const options = { ...signing, zone: 's.example', text }
    const parent = await signZone(join(directory, 'parent'), options)
    const files = { parent: parent.text, secure: child.text, insecure: CHILD }
    const ours = await startServer(t, { corefile: corefileOf('file parent'), files })
    t.notMatch(ours.output(), /will not validate/)
    const isOptOut = signing.nsec3?.optOut === true
    await validateWithDelv(t, ours.port, directory, parent, QUESTIONS, isOptOut)
    await validateWithUnbound(t, ours.port, parent, isOptOut)
    const atChild = await ask('dig', ours.port, ['+dnssec', 'secure.s.example', 'DS'])
    t.match(atChild.answer.join('\n'), / RRSIG DS /, 'the parent answers for the DS')
    await followThroughChange(t, directory, options, parent, child)
  })
}

const ZONES = [
  's.example',
  'secure.s.example',
  'insecure.s.example',
  'deep.er.s.example',
  'deep.er.open.s.example',
]

function temporary(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'sextant-validated-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

function corefileOf(parent: string): string {
  const block = (zone: string, line: string): string => {
    return `${zone}:{PORT} {\n  bind 127.0.0.1\n  any\n  minimal\n  loadbalance\n  ${line}\n}\n`
  }
  return (
    block('s.example', parent) +
    block('secure.s.example', 'file secure') +
    block('insecure.s.example', 'file insecure')
  )
}

async function validateWithDelv(
  t: Test,
  port: number,
  directory: string,
  { key }: SignedZone,
  questions: typeof QUESTIONS,
  isOptOut: boolean,
): Promise<void> {
  const delv = new Delv(port, directory, key)
  for (const [question, rcode, isSecure] of questions) {
    const isOpen = isOptOut && OPTED_OUT_OF_DELV.includes(question)
    await delv.expect(t, question, rcode, isSecure && !isOpen)
  }
}

async function validateWithUnbound(
  t: Test,
  port: number,
  { key }: SignedZone,
  isOptOut: boolean,
): Promise<void> {
  const zones = Object.fromEntries(ZONES.map((zone) => [zone, [port]]))
  const unbound = await startUnboundResolver(t, { key, zones, reuses: 'nothing' })
  const questions = QUESTIONS.map(([question]) => question.split(' '))
  const replies = await askEach(unbound.port, ['+dnssec', '+rec'], questions)
  for (const [i, [question, rcode, isSecure]] of QUESTIONS.entries()) {
    const { status, flags } = replies[i]!
    t.equal(status, rcode, `${question}: rcode of Unbound`)
    const hasAd = isSecure && !(isOptOut && OPTED_OUT.has(question))
    t.equal(flags.includes('ad'), hasAd, `${question}: AD of Unbound`)
  }
}

/** The same zone as a secondary has it, by AXFR and after an IXFR that adds, changes and removes names of the chain. */
async function followThroughChange(
  t: Test,
  directory: string,
  options: SigningOptions,
  parent: SignedZone,
  child: SignedZone,
): Promise<void> {
  const isOptOut = options.nsec3?.optOut === true
  const port = await freePort()
  const peer = { zone: 's.example', port, signed: false, zoneText: parent.text }
  const nsd = await startPeer(t, 'nsd', peer)
  const corefile = corefileOf(`secondary {\n transfer from 127.0.0.1:${nsd.port}\n }`)
  const files = { secure: child.text, insecure: CHILD }
  const server = await startServer(t, { corefile, files, beside: { port, directory } })
  await server.prints(/transferred \(AXFR\)/)
  await validateWithDelv(t, server.port, directory, parent, QUESTIONS, isOptOut)
  const text = CHANGED + child.ds
  const changed = await signZone(join(directory, 'parent'), { ...options, text })
  writeFileSync(join(nsd.directory, 'zone'), changed.text)
  nsd.signal('SIGHUP')
  // NSD sends the whole zone where the differences are larger.
  await server.prints(/transferred \([AI]XFR\).*serial 2/)
  await validateWithDelv(t, server.port, directory, changed, QUESTIONS_AFTER, isOptOut)
}
