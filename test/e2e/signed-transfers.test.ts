import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ask, askEach, type Reply } from '../support/dig.ts'
import {
  type Denial,
  KNOT_POLICY,
  type RunningPeer,
  serialAt,
  startPeer,
  transferred,
} from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { Delv } from './delv.ts'

// Long: it starts many servers.

/*
 * Knot signs a zone, and we follow it by IXFR while its names change: every chain that the differences make must be the
 * one that Knot answers from, and delv must validate it.
 */

const ZONE = 's.example'
const TEXT = `@ 600 SOA ns1 hostmaster 1 3600 600 86400 300
$TTL 600
@ NS ns1
ns1 A 127.0.0.1
www A 192.0.2.4
*.wild A 192.0.2.7
a.b.ent A 192.0.2.6
deep.er NS ns1
sec NS ns1
`

/** Edits, in the syntax of nsupdate; each changes the chain in another place or way. */
const EDITS: readonly (readonly string[])[] = [
  ['add new.s.example 60 A 192.0.2.30'],
  ['delete a.b.ent.s.example A', 'add zz.b.ent.s.example 60 A 192.0.2.6'],
  ['add 0.s.example 60 TXT first', 'add zzz.s.example 60 TXT last', 'delete new.s.example A'],
  ['delete *.wild.s.example A', 'add *.s.example 60 TXT wild'],
  ['add x.y.z.deleg.s.example 60 NS ns1.s.example', 'delete deep.er.s.example NS'],
  [`add sec.s.example 60 DS 1 13 2 ${'00'.repeat(32)}`],
  ['delete sec.s.example DS', 'delete *.s.example TXT'],
]

const NAMES = [
  ...['', 'www.', 'new.', '0.', 'zzz.', 'nope.', 'a.nope.', 'wild.', 'any.wild.', 'a.any.wild.'],
  ...['ent.', 'b.ent.', 'a.b.ent.', 'zz.b.ent.', 'c.ent.', 'er.', 'deep.er.', 'deleg.', 'z.deleg.'],
  ...['a.z.deleg.', 'x.y.z.deleg.', 'sec.', '000.', 'zzzz.'],
]

const tools = needs('dig', 'delv', 'knotd', 'nsupdate')
for (const denial of ['nsec', 'nsec3', 'opt-out'] as const) {
  t.test(`IXFR of a zone that Knot signs: ${denial}`, tools, (t) => follow(t, denial))
}

async function follow(t: Test, denial: Denial): Promise<void> {
  const port = await freePort()
  const options = { zone: ZONE, port, signed: false, zoneText: TEXT, dnssec: denial }
  const knot = await startPeer(t, 'knotd', options)
  const directory = mkdtempSync(join(tmpdir(), 'sextant-followed-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const corefile = `${ZONE}:{PORT} {
 bind 127.0.0.1
 minimal
 transfer {
  to 127.0.0.1
 }
 secondary {
  transfer from 127.0.0.1:${knot.port}
 }
}
`
  const server = await startServer(t, { corefile, beside: { port, directory } })
  await server.prints(/transferred \(AXFR\)/)
  const keys = await ask('dig', knot.port, [ZONE, 'DNSKEY'])
  const key = keys.answer.find((line) => / DNSKEY 257 /.test(line))!
  const delv = new Delv(server.port, directory, key)
  await compare(t, 'AXFR', knot, server, delv)
  for (const [i, edit] of EDITS.entries()) {
    const before = await serialAt(knot.port, ZONE)
    await update(t, knot, edit)
    await caughtUp(knot, server, before)
    await compare(t, `edit ${i + 1}`, knot, server, delv)
  }
  // The whole chain is replaced by one of the other kind.
  const other = denial === 'nsec' ? 'nsec3' : 'nsec'
  const conf = join(knot.directory, 'conf')
  const changed = readFileSync(conf, 'latin1').replace(KNOT_POLICY[denial], KNOT_POLICY[other])
  writeFileSync(conf, changed)
  const before = await serialAt(knot.port, ZONE)
  knot.signal('SIGHUP')
  await caughtUp(knot, server, before)
  await compare(t, `from ${denial} to ${other}`, knot, server, delv)
  const came = (kind: string): number => server.output().split(`transferred (${kind})`).length - 1
  t.equal(came('AXFR'), 1, server.output())
  t.ok(came('IXFR') > EDITS.length, `${came('IXFR')} transfers were differences`)
  t.notMatch(server.output(), /will not validate/)
}

async function update(t: Test, knot: RunningPeer, edit: readonly string[]): Promise<void> {
  const head = [`server 127.0.0.1 ${knot.port}`, `zone ${ZONE}`]
  const lines = [...head, ...edit.map((line) => `update ${line}`), 'send', '']
  writeFileSync(join(knot.directory, 'update'), lines.join('\n'))
  const { code, stderr } = await run('nsupdate', [join(knot.directory, 'update')])
  t.equal(code, 0, stderr)
}

/** Waits until the primary has something newer than `before`, and we have it too. */
async function caughtUp(knot: RunningPeer, server: RunningServer, before: number): Promise<void> {
  await until(async () => (await serialAt(knot.port, ZONE)) !== before, 'Knot to sign')
  const areSame = async (): Promise<boolean> => {
    return (await serialAt(knot.port, ZONE)) === (await serialAt(server.port, ZONE))
  }
  await until(areSame, 'the transfer')
}

async function compare(
  t: Test,
  when: string,
  knot: RunningPeer,
  server: RunningServer,
  delv: Delv,
): Promise<void> {
  t.same(
    await transferred(server.port, ZONE),
    await transferred(knot.port, ZONE),
    `${when}: the same records`,
  )
  const questions = NAMES.map((name) => [`${name}${ZONE}`, 'A'])
  const [ours, theirs] = await Promise.all(
    [server, knot].map(({ port }) => askEach(port, ['+dnssec', '+bufsize=4096'], questions)),
  )
  const essence = ({ status, answer, authority }: Reply): string => {
    return [status, ...answer, '--', ...authority].join('\n').toLowerCase()
  }
  for (const [i, question] of questions.entries()) {
    t.equal(essence(ours![i]!), essence(theirs![i]!), `${when}: ${question.join(' ')}`)
  }
  await delv.expect(t, `nope.nope.www.${ZONE} A`, 'NXDOMAIN', true)
  await delv.expect(t, `www.${ZONE} TXT`, 'NOERROR', true)
  await delv.expect(t, `${ZONE} SOA`, 'NOERROR', true)
}
