import { chmodSync, copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import { printName } from '../../../src/dns/name/name.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { ZONE_SIGNING } from '../../../src/signing/registry.ts'
import { FakeTimers, SetUp, setupError } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { until } from '../../support/until.ts'
import { wire } from '../../support/zone-names.ts'
import { FLAGS_ZSK, writeKey } from './stage.ts'

t.test('errors of the Corefile', async (t) => {
  const table: readonly { readonly lines: string; readonly want: string }[] = [
    { lines: '', want: 'dnssec has no keys; add keys DIR, or key file KEY for each key' },
    { lines: 'key', want: "Wrong argument count or unexpected line ending after 'key'" },
    { lines: 'key file', want: "Wrong argument count or unexpected line ending after 'file'" },
    { lines: 'key directory x', want: "unknown source of keys 'directory'; use key file KEY..." },
    {
      lines: 'key aws_secretsmanager x',
      want: 'key aws_secretsmanager is not supported: Sextant has no AWS client',
    },
    { lines: 'keys', want: 'Wrong argument count' },
    { lines: 'keys a b', want: 'Wrong argument count' },
    {
      lines: 'keys secret a/b',
      want: 'keys secret is not supported by this version; use keys DIR',
    },
    {
      lines: 'keys pkcs11:token=x',
      want: 'keys of a PKCS #11 token are not supported; use keys DIR',
    },
    { lines: 'keys a\nkeys b', want: 'keys come from one place' },
    { lines: 'keys a\nkey file b', want: 'keys come from one place' },
    { lines: 'key file b\nkeys a', want: 'keys come from one place' },
    { lines: 'key file a\nsplit', want: 'split needs keys DIR' },
    { lines: 'key file a\nalgorithm ED25519', want: 'algorithm needs keys DIR' },
    { lines: 'key file a\nparent 192.0.2.1', want: 'parent needs keys DIR' },
    { lines: 'keys a\nsplit x', want: 'Wrong argument count' },
    {
      lines: 'keys a\nalgorithm ED2551',
      want: "no keys are made for algorithm 'ED2551'; use one of RSASHA256, RSASHA512, ECDSAP256SHA256, ECDSAP384SHA384, ED25519; did you mean ED25519?",
    },
    { lines: 'keys a\nalgorithm RSASHA1', want: "no keys are made for algorithm 'RSASHA1'" },
    {
      lines: 'keys a\nparent ns.example.org',
      want: 'parent "ns.example.org" is not an address; write ADDRESS or ADDRESS:PORT',
    },
    { lines: 'keys a\nparent 192.0.2.1:99999', want: 'is not an address' },
    {
      lines: 'key file a\ndenial nsec5',
      want: "unknown denial 'nsec5'; use nsec, nsec3, nsec3 opt-out or compact",
    },
    {
      lines: 'key file a\ndenial nsec opt-out',
      want: "unknown option 'opt-out'; only nsec3 has one, opt-out",
    },
    { lines: 'key file a\ndenial nsec3 optout', want: "unknown option 'optout'" },
    { lines: 'key file a\ncache_capacity', want: 'Wrong argument count' },
    {
      lines: 'key file a\ncache_capacity 0',
      want: 'cache_capacity is "0"; use a whole number from 1 to 10000000',
    },
    { lines: 'key file a\ncache_capacity x', want: 'cache_capacity is "x"' },
    {
      lines: 'key file a\nsignatures_per_second 0',
      want: 'signatures_per_second is "0"; use a whole number from 1 to 60000',
    },
    {
      lines: 'key file a\nsignatures_per_second 10 20',
      want: 'signatures_per_second is "20"; use a whole number from 1 to 10',
    },
    {
      lines: 'key file a\ncache_capcity 5',
      want: "unknown property 'cache_capcity'; did you mean cache_capacity?",
    },
    { lines: 'keys a\npolicy fast', want: "no policy 'fast' above; write policy fast { … }" },
    {
      lines: 'keys a\npolicy defualt',
      want: "no policy 'defualt' above; write policy defualt { … }; did you mean default?",
    },
    {
      lines: 'keys a\npolicy default {\n zsk-lifetime 30d\n}',
      want: "policy 'default' exists; use another name",
    },
    {
      lines: 'keys a\npolicy fast {\n zsk-life 30d\n}',
      want: 'policy fast: zsk-life: unknown property',
    },
  ]
  for (const { lines, want } of table) {
    const fault = setupError(dnssec, `dnssec {\n${lines}\n}`)
    t.ok(fault.startsWith('Corefile:'), `${lines}: has a place: ${fault}`)
    t.ok(fault.includes(want), `${lines}: ${fault}`)
  }
  const twice = setupError(dnssec, 'dnssec {\nkey file a\n}\ndnssec {\nkey file b\n}')
  t.match(twice, 'this plugin can only be used once per Server Block')
})

t.test('faults of keys, at the start and in a check', async (t) => {
  const directory = temporaryDirectory(t)
  const good = await writeKey(directory, 'example.org.')
  const parent = await writeKey(directory, 'org.', { algorithm: Algorithm.Ed25519 })
  const foreign = await writeKey(directory, 'example.net.')
  const open = await writeKey(directory, 'example.org.', { flags: FLAGS_ZSK })
  chmodSync(`${open.path}.private`, 0o644)
  const half = await writeKey(directory, 'example.org.')
  rmSync(`${half.path}.private`)
  const copy = join(directory, 'copy')
  copyFileSync(`${good.path}.key`, `${copy}.key`)
  copyFileSync(`${good.path}.private`, `${copy}.private`)
  const damaged = join(directory, 'damaged')
  writeFileSync(`${damaged}.key`, 'example.org. IN DNSKEY 257 3 13 AAAA\n')
  const table = [
    { keys: [good.path], faults: [] },
    { keys: [`${good.path}.key`], faults: [] },
    { keys: [`${good.path}.private`], faults: [] },
    {
      keys: [parent.path],
      faults: [],
      warnings: [/key org\. ED25519 \d+ also signs example\.org\./],
    },
    {
      keys: [foreign.path],
      faults: [
        /key example\.net\. .* cannot sign example\.org\.: it is of another zone; make a key/,
      ],
    },
    {
      keys: [open.path],
      faults: [/^Corefile:2: other users can read the private key .*; run chmod 600 /],
    },
    { keys: [half.path], faults: [/\.private/] },
    { keys: [good.path, copy], faults: [/two keys have this tag/] },
    { keys: [damaged, foreign.path], faults: [/damaged\.key:1: /, /cannot sign/] },
  ]
  for (const { keys, faults, warnings = [] } of table) {
    const corefile = `dnssec {\n${keys.map((key) => `key file ${key}`).join('\n')}\n}`
    const read: string[] = []
    const checked = await new SetUp(dnssec, corefile).check((what) => read.push(what))
    const name = keys.map((key) => key.slice(directory.length)).join()
    t.match(checked.faults, faults, name)
    t.equal(checked.faults.length, faults.length, name)
    t.match(checked.warnings, warnings, name)
    t.equal(checked.warnings.length, warnings.length, name)
    if (faults.length === 0) t.strictSame(read, [`keys of example.org.: ${keys.length}`])

    const c = new SetUp(dnssec, corefile)
    const failure = await c.start().then(
      () => undefined,
      (error: unknown) => error,
    )
    await c.stop()
    if (faults.length === 0) t.equal(failure, undefined, name)
    else t.ok(failure instanceof InputError && failure.all().length === faults.length, name)
  }
})

t.test('keys of a directory', async (t) => {
  const directory = join(temporaryDirectory(t), 'keys')
  const tagsOf = (c: SetUp): string[] => {
    const signed = c.block.shared.find(ZONE_SIGNING)!.of(wire('example.org.'))!
    const { dnskeys, zoneSigners, keySigners } = signed.keys.find(wire('example.org.'))!
    const numbers = [dnskeys, keySigners, zoneSigners].map(({ length }) => length)
    return [...zoneSigners.map(({ tag }) => `${tag}`).sort(), numbers.join()]
  }
  const run = async (lines: string): Promise<{ c: SetUp; tags: string[] }> => {
    const c = new SetUp(dnssec, `dnssec {\nkeys ${directory}\n${lines}\n}`)
    t.teardown(() => c.stop())
    await c.start()
    return { c, tags: tagsOf(c) }
  }
  const first = await run('')
  t.match(first.tags, [/^\d+$/, '1,1,1'], 'a CSK is made')
  t.ok(existsSync(directory))
  const checked = await first.c.check()
  t.strictSame(checked, { faults: [], warnings: [] })
  t.strictSame((await run('split\nalgorithm ED25519')).tags, first.tags, 'an existing key is used')

  const zsk = await writeKey(directory, 'example.org.', { flags: FLAGS_ZSK })
  const both = await run('')
  t.strictSame(both.tags, [`${zsk.key.tag}`, '2,1,1'], 'a KSK and a ZSK')
  const foreign = await writeKey(directory, 'example.net.')
  chmodSync(`${zsk.path}.private`, 0o644)
  const { faults } = await both.c.check()
  t.match(faults, [
    /private key .*; run chmod 600/,
    /no directive signs zone example\.net\.; move K/,
  ])
  t.equal(faults.length, 2)
  rmSync(`${foreign.path}.key`)
  t.match((await run('')).tags, [/^\d+$/, '1,1,1'], 'the readable key signs all')
})

t.test('a key that appears, and one that becomes unreadable', async (t) => {
  const directory = join(temporaryDirectory(t), 'keys')
  const { path } = await writeKey(directory, 'example.org.')
  const timers = new FakeTimers()
  const c = new SetUp(dnssec, `dnssec {\nkeys ${directory}\n}`, undefined, { timers })
  t.teardown(() => c.stop())
  await c.start()
  const signed = c.block.shared.find(ZONE_SIGNING)!.of(wire('example.org.'))!
  const changed: string[] = []
  signed.keys.subscribe((zone) => changed.push(printName(zone)))
  const count = (): number => signed.keys.find(wire('example.org.'))!.dnskeys.length
  await writeKey(directory, 'example.org.', { flags: FLAGS_ZSK })
  const passes = async (isSeen: () => boolean): Promise<void> => {
    await until(async () => {
      await timers.advance(60_000)
      return isSeen()
    }, 'the change to be seen')
  }
  await passes(() => count() === 2)
  t.strictSame(changed, ['example.org.'])
  chmodSync(`${path}.private`, 0o644)
  await passes(() => c.lines.some((line) => line.includes('other users can read')))
  t.equal(count(), 2, 'it stays in use')
})

t.test('a policy has one name in the whole Corefile', async (t) => {
  const c = new SetUp(dnssec, 'dnssec {\nkey file a\npolicy fast {\n signatures-validity 20d\n}\n}')
  t.equal(c.warnings.length, 0)
})
