import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { InlineZones } from '../../../src/authority/inline/inline-zones.ts'
import type { OwnedZone } from '../../../src/authority/owned-zone.ts'
import { nextVersion } from '../../../src/authority/version-memory.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { auto } from '../../../src/plugins/auto/setup.ts'
import { file } from '../../../src/plugins/file/setup.ts'
import { DEFAULT_SIGNING } from '../../../src/signing/zone-keys.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { type SetKey, ZONE_VERSIONS } from '../../../src/xfr/zone-versions.ts'
import { backdate } from '../../support/backdate.ts'
import { FixedSigning } from '../../support/fixed-signing.ts'
import { needs, run } from '../../support/peer.ts'
import { FakeTimers, SetUp } from '../../support/setup.ts'
import { show, transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-text.ts'
import { imageOf, printView } from '../../support/zone-version.ts'

const text = (serial: number, records: string): string =>
  `@ 60 SOA ns host ${serial} 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n${records}\n`
const EDITED = 'b 60 A 192.0.2.3\n*.w 60 TXT x\nsub 60 NS ns.sub\nns.sub 60 A 192.0.2.4'

async function setUp(
  t: Test,
  lines = '',
  directive = file,
  corefile = `file DIR/db {\n${lines}\n}`,
) {
  const directory = t.testdir({ db: text(1, `a 60 A 192.0.2.2\n${EDITED}`) })
  backdate(directory)
  const signing = new FixedSigning()
  await signing.makeKey('example.org.')
  const timers = new FakeTimers()
  const start = async (): Promise<SetUp> => {
    const named = corefile.replaceAll('DIR', directory)
    const c = new SetUp(signing.around(directive), named, ['example.org.'], { timers })
    c.clock.nowMs = Date.now()
    t.teardown(() => c.stop())
    await c.start()
    return c
  }
  return { directory, signing, timers, start }
}

/** The records that are served. */
function served(c: SetUp, zone = 'example.org.'): string[] {
  const version = c.block.shared.acquire(ZONE_VERSIONS).find(wire(zone))
  const view = version && VersionView.open(version)
  if (view === undefined) return []
  const soa = printView(view.soa()!)
  return [soa, ...Array.from(view.content(), printView).sort()]
}

const serialOf = (c: SetUp): number => Number(served(c)[0]?.split(' ')[5])
const signatures = (c: SetUp, name: string): string[] =>
  served(c).filter((line) => line.startsWith(`${name}.example.org.`) && line.includes(' RRSIG A '))

async function verify(t: Test, directory: string, c: SetUp): Promise<void> {
  const path = join(directory, 'verified')
  const [soa, ...others] = served(c)
  const lines = [soa!, ...others].map((line) => line.replace(/^(\S+ \d+) /, '$1 IN '))
  writeFileSync(path, `${lines.join('\n')}\n`)
  const bind = await run('dnssec-verify', ['-z', '-o', 'example.org', path])
  t.equal(bind.code, 0, bind.stderr)
  const ldns = await run('ldns-verify-zone', [path])
  t.equal(ldns.code, 0, ldns.stderr + ldns.stdout)
}

t.test(
  'the versions of a file are served signed',
  needs('dnssec-verify', 'ldns-verify-zone'),
  async (t) => {
    const { directory, signing, timers, start } = await setUp(t, 'reload 1s')
    const c = await start()
    const reply = transaction({ name: 'a.example.org.', dnssecOk: true })
    const shown = await show(c.handler(), reply)
    t.match(shown.answer, [/^a\.example\.org\. 60 IN A /, /^a\.example\.org\. 60 IN RRSIG /])
    await verify(t, directory, c)
    t.strictSame([...signing.claimed], [['example.org.', 3600]])
    const [report] = c.statusReports.flatMap((status) => status().signing ?? [])
    t.match(report, { zone: 'example.org.', denial: 'nsec', fault: '' })
    const serial = serialOf(c)
    const kept = signatures(c, 'b')
    writeFileSync(join(directory, 'db'), text(2, `c 60 A 192.0.2.2\n${EDITED}`))
    await timers.advance(1000)
    await until(() => serialOf(c) > serial, 'the edit')
    await verify(t, directory, c)
    t.strictSame(signatures(c, 'a'), [])
    t.equal(signatures(c, 'c').length, 1)
    t.strictSame(signatures(c, 'b'), kept, 'other signatures stay')
    const second = serialOf(c)
    await signing.makeKey('example.org.')
    await until(() => serialOf(c) > second, 'the other key')
    await verify(t, directory, c)
  },
)

t.test('a reload and a restart keep signatures and serial', async (t) => {
  const { directory, start, timers } = await setUp(t, 'snapshot DIR/snapshot')
  const first = await start()
  const before = served(first)
  // As during a reload of the Corefile: both run for a while.
  const second = await start()
  t.strictSame(served(second), before)
  await first.stop()
  await timers.advance(1000)
  await second.stop()
  const third = await start()
  t.strictSame(served(third), before)
  const log = third.lines.filter((line) => /signed/.test(line))
  t.strictSame(log, [])
  await third.stop()
  writeFileSync(join(directory, 'db'), text(2, `c 60 A 192.0.2.2\n${EDITED}`))
  const fourth = await start()
  t.strictSame(
    signatures(fourth, 'b'),
    before.filter((line) => /^b.*RRSIG A /.test(line)),
  )
  t.ok(serialOf(fourth) > Number(before[0]!.split(' ')[5]))
  t.equal(signatures(fourth, 'c').length, 1)
})

t.test('a zone without keys is not served before it has some', async (t) => {
  const { signing, start } = await setUp(t)
  const { keys } = signing
  signing.keys = undefined
  const c = await start()
  t.match((await show(c.handler(), transaction({ name: 'a.example.org.' }))).status, /^SERVFAIL/)
  t.match(
    c.problemReports.flatMap(({ groups }) =>
      [...groups()].flatMap(({ problems }) => [...problems]),
    ),
    [
      {
        object: 'zone example.org.',
        reason: /so queries get SERVFAIL: zone example.org. has no key/,
      },
    ],
  )
  signing.keys = keys
  await signing.makeKey('example.org.')
  await until(() => served(c).length > 0, 'the zone')
})

t.test('a file with signatures is refused, at the line', async (t) => {
  const { directory, start } = await setUp(t)
  writeFileSync(join(directory, 'db'), text(1, 'a 60 A 192.0.2.2\na 60 NSEC b A NSEC RRSIG'))
  const refused =
    /\/db:5: .*signed already \(a\.example\.org\. NSEC\), but `dnssec` signs it; remove /
  await start().then(
    () => t.fail('it starts'),
    (error) => t.match(error.print(), refused),
  )
})

t.test('changes that the owner of a zone knows are all that is visited', async (t) => {
  const signing = new FixedSigning()
  await signing.makeKey('example.org.')
  const c = new SetUp(signing.around(file), 'file db', ['example.org.'])
  let put: readonly OwnedZone[] = []
  const zones = new InlineZones({
    ...{ c, directive: 'file', nsInAuthority: true },
    signingOf: () => ({ keys: signing, policy: DEFAULT_SIGNING, claim: () => {} }),
    publish: (all) => (put = all),
  })
  t.teardown(() => zones.stop())
  const take = async (serial: number, lines: string, changed?: SetKey[]): Promise<void> => {
    const { version } = imageOf(text(serial, lines), 'example.org.')
    const shared = { version: nextVersion(), buffer: version.buffer }
    const about = { zone: version.zone, zoneText: 'example.org.', answerer: undefined }
    zones.publish([{ ...about, shared, serial, changed }])
    await zones.settled()
  }
  await take(1, 'a 60 A 192.0.2.2')
  const first = put[0]!.serial
  const visits = t.capture(VersionView.prototype, 'owner', VersionView.prototype.owner)
  await take(2, 'a 60 A 192.0.2.3', [{ owner: wire('a.example.org.'), type: RRType.A }])
  t.ok(put[0]!.serial > first)
  t.equal(visits().length, 0)
  t.ok(put[0]!.changed!.some(({ type }) => type === RRType.RRSIG))
})

t.test('auto: zones are signed when they are found', async (t) => {
  const corefile = 'auto {\n directory DIR/zones db.(.*) {1}\n reload 1s\n}'
  const { directory, signing, start, timers } = await setUp(t, '', auto, corefile)
  mkdirSync(join(directory, 'zones'))
  const c = await start()
  writeFileSync(join(directory, 'zones', 'db.z.example.org'), text(1, 'a 60 A 192.0.2.2'))
  await timers.advance(1000)
  const zone = 'z.example.org.'
  await until(() => served(c, zone).length > 0, 'the zone')
  t.ok(served(c, zone).some((line) => line.includes(' RRSIG SOA ')))
  t.equal(signing.claimed.get(zone), 3600)
})
