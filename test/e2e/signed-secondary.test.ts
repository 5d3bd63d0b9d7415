import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ask, askEach } from '../support/dig.ts'
import {
  type PeerName,
  type RunningPeer,
  serialAt,
  startPeer,
  transferred,
} from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, putFile, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { Delv, readKey } from './delv.ts'
import { startUnboundResolver } from './resolvers.ts'

// Long: it starts many servers.

/*
 * A primary has an unsigned zone, we transfer and sign it, and other secondaries transfer it from us:
 *
 *     Knot or NSD ─▶ Sextant with `dnssec` ─▶ Knot and NSD
 */

const ZONE = 's.example'
const BODY = `$TTL 600
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.4
*.wild A 192.0.2.7
a.b.ent A 192.0.2.6
alias CNAME www
dn DNAME ent
insecure NS ns.insecure
ns.insecure A 192.0.2.8
`
const SECONDARIES: readonly PeerName[] = ['knotd', 'nsd']

/** Question, rcode, and whether validation is possible. */
const QUESTIONS = [
  [`www.${ZONE} A`, 'NOERROR', true],
  [`www.${ZONE} TXT`, 'NOERROR', true],
  [`${ZONE} SOA`, 'NOERROR', true],
  [`any.wild.${ZONE} A`, 'NOERROR', true],
  [`b.ent.${ZONE} A`, 'NOERROR', true],
  [`alias.${ZONE} A`, 'NOERROR', true],
  [`a.b.dn.${ZONE} A`, 'NOERROR', true],
  [`nope.${ZONE} A`, 'NXDOMAIN', true],
  [`nope.www.${ZONE} A`, 'NXDOMAIN', true],
  [`insecure.${ZONE} DS`, 'NOERROR', true],
] as const

const zoneText = (serial: number, lines: string): string => {
  return `@ 600 SOA ns1 hostmaster ${serial} 3600 1 86400 300\n${BODY}${lines}`
}

/** What each edit adds, and the next one removes: all kinds of names. */
const ADDED: readonly (readonly string[])[] = [
  ['new.cut NS ns.insecure', 'glue.new.cut A 192.0.2.9'],
  ['www TXT "text"', '*.b.ent TXT "wildcard"', 'x.y.z.empty A 192.0.2.10'],
  ['cut NS ns.insecure', 'ns.cut A 192.0.2.11', '@ MX 10 www'],
  ['*.new TXT "wildcard"', `insecure DS 1 13 2 ${'00'.repeat(32)}`],
]

/** Returns the added lines of an edit, as `owner ttl type rdata` with absolute owners. */
function addedBy(edit: number): string[] {
  const lines = [`e${edit} A 192.0.2.${edit}`, ...(ADDED[(edit - 1) % ADDED.length] ?? [])]
  return lines.map((line) => {
    const [owner = '', ...rest] = line.split(' ')
    const target = rest[0] === 'NS' || rest[0] === 'MX' ? `.${ZONE}.` : ''
    return `${owner === '@' ? '' : `${owner}.`}${ZONE}. 60 ${rest.join(' ')}${target}`
  })
}

/** Makes a change of the zone at a primary, after which `e<edit>` exists. */
type Edit = (primary: RunningPeer, edit: number) => Promise<void>

const ROWS: Readonly<Record<string, { name: PeerName; edit: Edit }>> = {
  nsec: {
    name: 'knotd',
    edit: async (primary, edit) => {
      const gone = edit === 1 ? [] : addedBy(edit - 1)
      await update(primary, [
        ...gone.map((line) => `delete ${line.replace(/ 60 /, ' ')}`),
        ...addedBy(edit).map((line) => `add ${line}`),
      ])
    },
  },
  nsec3: {
    name: 'nsd',
    edit: async (primary, edit) => {
      putFile(primary.directory, 'zone', zoneText(1 + edit, `${addedBy(edit).join('\n')}\n`))
      primary.signal('SIGHUP')
    },
  },
}

async function update(primary: RunningPeer, edits: readonly string[]): Promise<void> {
  const head = [`server 127.0.0.1 ${primary.port}`, `zone ${ZONE}`]
  const lines = [...head, ...edits.map((line) => `update ${line}`), 'send', '']
  const path = join(primary.directory, 'update')
  writeFileSync(path, lines.join('\n'))
  const { code, stderr } = await run('nsupdate', [path])
  if (code !== 0) throw new Error(`nsupdate: ${stderr}`)
}

function corefileOf(primary: RunningPeer, denial: string, to: readonly RunningPeer[]): string {
  return `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 dnssec {
  keys keys
  denial ${denial}
 }
 transfer {
  to 127.0.0.1 ${to.map(({ port }) => `127.0.0.1:${port}`).join(' ')}
 }
 secondary {
  transfer from 127.0.0.1:${primary.port}
 }
}
`
}

const tools = needs(
  ...['dig', 'delv', 'unbound', 'nsupdate', 'ldns-verify-zone', 'kzonecheck'],
  ...SECONDARIES,
)
for (const [denial, { name, edit }] of Object.entries(ROWS)) {
  t.test(`a zone of ${name} that we sign with ${denial}`, tools, async (t) => {
    const port = await freePort()
    const about = { zone: ZONE, port, signed: false }
    const primary = await startPeer(t, name, { ...about, zoneText: zoneText(1, '') })
    const followers: RunningPeer[] = []
    for (const one of SECONDARIES) followers.push(await startPeer(t, one, about))
    const directory = temporaryDirectory(t)
    const corefile = corefileOf(primary, denial, followers)
    let server = await startServer(t, { corefile, beside: { port, directory } })
    await server.prints(/transferred \(AXFR\)/)
    const key = readKey(join(directory, 'keys'))
    const delv = new Delv(port, directory, key)
    const zones = { [ZONE]: [port] }
    const unbound = await startUnboundResolver(t, { key, zones, reuses: 'nothing' })

    const arrives = async (number: number): Promise<void> => {
      await edit(primary, number)
      await until(() => isAnswered(port, number), `edit ${number}`)
    }
    const check = async (when: string): Promise<void> => {
      await followed(t, when, server, followers)
      await validate(t, when, unbound.port)
    }
    await check('at first')
    for (const [question, rcode, isSecure] of QUESTIONS) {
      await delv.expect(t, question, rcode, isSecure)
    }
    for (const number of [1, 2, 3, 4]) {
      await arrives(number)
      await check(`edit ${number}`)
      await verify(t, directory, await transferred(port, ZONE))
    }
    await server.prints(/transferred \(IXFR\)/)

    server.process.kill('SIGKILL')
    await server.exited()
    server = await startServer(t, { corefile, beside: { port, directory } })
    await until(() => isAnswered(port, 4), 'the zone after a restart')
    t.equal(readKey(join(directory, 'keys')), key, 'the same key')
    await check('after a restart')
    await arrives(5)
    await check('an edit after a restart')
    await verify(t, directory, await transferred(port, ZONE))
    t.notMatch(server.output(), /\[ERROR\]/)

    primary.signal('SIGKILL')
    server.process.kill('SIGUSR1')
    await server.prints(/Reloading complete/)
    await validate(t, 'a reload without the primary', unbound.port)
    server.process.kill('SIGTERM')
    await server.exited()
    const last = await startServer(t, { corefile, beside: { port, directory } })
    await last.prints(/cannot be transferred \(no version to serve yet\)/)
    t.equal((await ask('dig', port, [`www.${ZONE}`, 'A'])).status, 'SERVFAIL')
    const [{ port: other }] = followers as [RunningPeer]
    t.equal((await ask('dig', other, [`www.${ZONE}`, 'A'])).status, 'NOERROR', 'the others go on')
  })
}

async function isAnswered(port: number, edit: number): Promise<boolean> {
  const { answer } = await ask('dig', port, ['+dnssec', `e${edit}.${ZONE}`, 'A'])
  return answer.length === 2
}

/** Waits until all have our version, and compares the records. */
async function followed(
  t: Test,
  when: string,
  server: RunningServer,
  followers: readonly RunningPeer[],
): Promise<void> {
  const areEqual = async (): Promise<boolean> => {
    const serials = await Promise.all([server, ...followers].map((one) => serialAt(one.port, ZONE)))
    return serials.every((serial) => serial === serials[0])
  }
  await until(areEqual, `${when}: the secondaries`)
  const ours = await transferred(server.port, ZONE)
  for (const [i, { port }] of followers.entries()) {
    t.strictSame(await transferred(port, ZONE), ours, `${when}: ${SECONDARIES[i]} has what we have`)
  }
}

async function validate(t: Test, when: string, port: number): Promise<void> {
  const questions = QUESTIONS.map(([question]) => question.split(' '))
  const replies = await askEach(port, ['+dnssec', '+rec'], questions)
  for (const [i, [question, rcode, isSecure]] of QUESTIONS.entries()) {
    const { status, flags } = replies[i]!
    t.equal(status, rcode, `${when}: ${question}: rcode of Unbound`)
    t.equal(flags.includes('ad'), isSecure, `${when}: ${question}: AD of Unbound`)
  }
}

async function verify(t: Test, directory: string, lines: readonly string[]): Promise<void> {
  const path = join(directory, `${ZONE}.zone`)
  const isSoa = (line: string): boolean => / SOA /.test(line) && !/ RRSIG /.test(line)
  const sorted = [...lines.filter(isSoa), ...lines.filter((line) => !isSoa(line))]
  writeFileSync(path, `${sorted.join('\n')}\n`)
  const commands = [
    ['ldns-verify-zone', path],
    ['kzonecheck', '-d', 'on', '-o', ZONE, path],
  ] as const
  for (const [command, ...args] of commands) {
    const { code, stdout, stderr } = await run(command, args)
    t.equal(code, 0, `${command}: ${stdout}${stderr}`)
  }
}

t.test('a primary that signs', needs('dig', 'knotd', 'nsupdate', 'delv'), async (t) => {
  const port = await freePort()
  const about = { zone: ZONE, port, signed: false, zoneText: zoneText(1, '') }
  const signs = await startPeer(t, 'knotd', { ...about, dnssec: 'nsec' })
  const refused = await startServer(t, {
    corefile: corefileOf(signs, 'nsec', []),
    beside: { port, directory: temporaryDirectory(t) },
  })
  await refused.prints(/\[ERROR\].*zone s\.example\. .*signed already .*from `dnssec`/)
  t.equal((await ask('dig', port, [`www.${ZONE}`, 'A'])).status, 'SERVFAIL', 'never unsigned')

  const later = await freePort()
  const primary = await startPeer(t, 'knotd', { ...about, port: later })
  const directory = temporaryDirectory(t)
  const corefile = corefileOf(primary, 'nsec', [])
  const server = await startServer(t, { corefile, beside: { port: later, directory } })
  await server.prints(/transferred \(AXFR\)/)
  const delv = new Delv(later, directory, readKey(join(directory, 'keys')))
  await delv.expect(t, `www.${ZONE} A`, 'NOERROR', true)
  const digest = '00'.repeat(32)
  await update(primary, [`add ${ZONE} 60 CDS 1 13 2 ${digest}`, `add e1.${ZONE} 60 A 192.0.2.1`])
  await server.prints(/\[ERROR\].*signed already \(s\.example\. CDS\)/)
  await delv.expect(t, `www.${ZONE} A`, 'NOERROR', true)
  await delv.expect(t, `e1.${ZONE} A`, 'NXDOMAIN', true)
  await update(primary, [`delete ${ZONE} CDS`])
  await until(() => isAnswered(later, 1), 'the zone that can be signed again')
  await server.prints(/can be signed again/)
  await delv.expect(t, `e1.${ZONE} A`, 'NOERROR', true)
})
