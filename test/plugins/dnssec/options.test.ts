import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { Algorithm } from '../../../src/dns/dnssec/algorithms.ts'
import { composeDs } from '../../../src/dns/dnssec/ds.ts'
import { RRClass, RRType } from '../../../src/dns/iana/index.ts'
import { dnssec } from '../../../src/plugins/dnssec/setup.ts'
import { ZONE_SIGNING } from '../../../src/signing/registry.ts'
import { ScriptedServer } from '../../support/scripted-server.ts'
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
    { lines: 'keys secret', want: 'keys secret needs NAMESPACE/NAME of a Secret, not ""' },
    { lines: 'keys secret a', want: 'keys secret needs NAMESPACE/NAME of a Secret, not "a"' },
    { lines: 'keys secret a/b/c', want: 'keys secret needs NAMESPACE/NAME of a Secret' },
    { lines: 'keys secret a/../b', want: 'keys secret needs NAMESPACE/NAME of a Secret' },
    { lines: 'keys secret a/b c', want: 'Wrong argument count' },
    { lines: 'keys secret a/b\nkeys c', want: 'keys come from one place' },
    { lines: 'keys secret a/b\nkubeconfig', want: 'Wrong argument count' },
    { lines: 'keys a\nkubeconfig b', want: 'kubeconfig needs keys secret NAMESPACE/NAME' },
    { lines: 'key file a\nkubeconfig b', want: 'kubeconfig needs keys secret NAMESPACE/NAME' },
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
    { lines: 'keys a\nshare', want: 'Wrong argument count' },
    { lines: 'keys a\nshare ..', want: '".." is not the name of a key of tsig' },
    { lines: 'key file a\nshare k', want: 'share needs keys DIR; remove share, or use keys DIR' },
    { lines: 'keys secret a/b\nshare k', want: 'share needs keys DIR' },
    {
      lines: 'keys a\nshare k\npolicy fast {\n zone-propagation-delay 9\n}',
      want: 'share needs a zone-propagation-delay of 10s or more',
    },
    { lines: 'keys a\nfrom', want: 'Wrong argument count' },
    { lines: 'keys a\nfrom k', want: 'from needs ADDRESS... KEY' },
    { lines: 'keys a\nfrom 192.0.2.1 192.0.2.2', want: 'from needs ADDRESS... KEY' },
    { lines: 'keys a\nfrom ns.example k', want: 'not an IP address' },
    { lines: 'keys a\nfrom 192.0.2.1 ..', want: '".." is not the name of a key of tsig' },
    { lines: 'keys a\nfrom 192.0.2.1 k\nfrom 192.0.2.2 k', want: 'from appears twice' },
    { lines: 'keys secret a/b\nfrom 192.0.2.1 k', want: 'from needs keys DIR' },
    { lines: 'key file a\nfrom 192.0.2.1 k', want: 'from needs keys DIR' },
    { lines: 'keys a\nfrom 192.0.2.1 k\nshare k', want: 'share and from exclude each other' },
    {
      lines: 'keys a\nfrom 192.0.2.1 k\nparent 192.0.2.9\nsplit',
      want: 'split has no effect with from: the other server makes the keys; remove it',
    },
    { lines: 'keys a\nalgorithm ED25519\nfrom 192.0.2.1 k', want: 'algorithm has no effect' },
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
  const timers = new FakeTimers()
  const setUp = (): SetUp => {
    const c = new SetUp(dnssec, `dnssec {\nkeys ${directory}\n}`, undefined, { timers })
    t.teardown(() => c.stop())
    return c
  }
  const dnskeysOf = (c: SetUp): readonly Uint8Array[] => {
    const signed = c.block.shared.find(ZONE_SIGNING)!.of(wire('example.org.'))!
    return signed.keys.find(wire('example.org.'))!.dnskeys
  }
  const first = setUp()
  t.strictSame(await first.check(), { faults: [], warnings: [] }, 'before the keys exist')
  t.notOk(existsSync(directory), 'a check makes none')
  await first.start()
  t.match(
    first.readiness.map(({ check, note }) => [check(), note?.()]),
    [['', /^keys of example\.org\.: next: /]],
    'the ready page has the next step',
  )
  const [key] = first.statusReports.flatMap((report) => report().keys ?? [])
  t.match(key, { zone: 'example.org.', role: 'csk', state: 'published', nextStepText: /./ })
  const dnskeys = dnskeysOf(first)
  t.equal(dnskeys.length, 1, 'a CSK is made')
  await first.stop()
  const second = setUp()
  await second.start()
  t.strictSame(dnskeysOf(second), dnskeys, 'and used again')

  const [id = ''] = readdirSync(directory).flatMap((name) => /^(K.*)\.key$/.exec(name)?.[1] ?? [])
  renameSync(join(directory, `${id}.private`), join(directory, 'away'))
  const read: string[] = []
  await second.check((what) => read.push(what))
  t.strictSame(read, [`keys of example.org.: 1, of which another provider signs with ${id}`])
  renameSync(join(directory, 'away'), join(directory, `${id}.private`))

  await writeKey(directory, 'example.net.')
  const [privateFile] = readdirSync(directory).filter((name) => /example\.org.*private$/.test(name))
  chmodSync(join(directory, privateFile!), 0o644)
  const { faults } = await second.check()
  t.match(faults, [
    /private key .*; run chmod 600/,
    /no directive signs zone example\.net\.; move K/,
  ])
  t.equal(faults.length, 2)
  await until(async () => {
    await timers.advance(60_000)
    return second.problemText().includes('run chmod 600')
  }, 'the fault to be reported')
  t.strictSame(dnskeysOf(second), dnskeys, 'the key stays in use')
})

t.test('a reload does not replace keys that the directory has lost', async (t) => {
  const directory = join(temporaryDirectory(t), 'keys')
  const setUp = (): SetUp => {
    const c = new SetUp(dnssec, `dnssec {\nkeys ${directory}\n}`)
    t.teardown(() => c.stop())
    return c
  }
  const running = setUp()
  await running.start()
  for (const what of ['emptied', 'gone']) {
    rmSync(directory, { recursive: true })
    if (what === 'emptied') mkdirSync(directory, { mode: 0o700 })
    const reloaded = setUp()
    await t.rejects(reloaded.start(), {
      name: 'InputError',
      position: { file: 'Corefile', line: 2 },
      message:
        /^no usable keys for example\.org\.: .* has lost the state of the rolls; restore a backup/,
    })
    await reloaded.stop()
    const isThere = existsSync(directory) ? readdirSync(directory) : []
    t.notOk(
      isThere.some((name) => name.startsWith('K')),
      `${what}: no key is made`,
    )
  }
  await running.stop()
  await setUp().start()
  t.equal(readdirSync(directory).filter((name) => name.startsWith('K')).length, 2, 'a restart does')
})

t.test('a directory that cannot be made', async (t) => {
  const file = join(temporaryDirectory(t), 'file')
  writeFileSync(file, '')
  const c = new SetUp(dnssec, `dnssec {\nkeys ${file}/keys\n}`)
  t.teardown(() => c.stop())
  await t.rejects(c.start(), {
    name: 'InputError',
    message: /^no usable keys for example\.org\.: .*file/,
  })
})

t.test('a policy has one name in the whole Corefile', async (t) => {
  const c = new SetUp(dnssec, 'dnssec {\nkey file a\npolicy fast {\n signatures-validity 20d\n}\n}')
  t.equal(c.warnings.length, 0)
})

t.test('algorithms that should not be used any more', async (t) => {
  const directory = temporaryDirectory(t)
  const advice = /algorithm RSASHA512 should not be used any more \(RFC 9904\)/
  const algorithm = Algorithm.RsaSha512
  const { path } = await writeKey(directory, 'example.org.', { algorithm })
  for (const { lines, inCorefile, ofKeys } of [
    { lines: `key file ${path}`, inCorefile: 0, ofKeys: 1 },
    { lines: `keys ${directory}`, inCorefile: 0, ofKeys: 1 },
    { lines: `keys ${directory}\n algorithm RSASHA512`, inCorefile: 1, ofKeys: 1 },
    { lines: `keys ${directory}\n policy p {\n algorithm RSASHA512\n}`, inCorefile: 1, ofKeys: 1 },
    { lines: `keys ${directory}/new\n algorithm ED25519`, inCorefile: 0, ofKeys: 0 },
  ]) {
    const c = new SetUp(dnssec, `dnssec {\n ${lines}\n}`)
    t.equal(c.warnings.filter((text) => advice.test(text)).length, inCorefile, lines)
    const { warnings } = await c.check()
    t.equal(warnings.filter((text) => advice.test(text)).length, ofKeys, `check of ${lines}`)
    await c.start()
    t.teardown(() => c.stop())
    t.equal(c.lines.filter((text) => advice.test(text)).length, ofKeys, `start of ${lines}`)
  }
})

t.test('the check compares the keys with the DS of the parent', async (t) => {
  const directory = temporaryDirectory(t)
  const { key } = await writeKey(directory, 'example.org.')
  const zone = wire('example.org.')
  let ds: readonly Uint8Array[] = []
  let rcode: number | undefined
  const parent = await ScriptedServer.open(t, () => {
    const about = { owner: zone, type: RRType.DS, rrclass: RRClass.IN, ttlSeconds: 60 }
    return rcode ?? ds.map((rdata) => ({ ...about, rdata }))
  })
  const corefile = `dnssec {\n keys ${directory}\n parent ${parent.address}\n}`
  const foreign = Buffer.from('30390d0200', 'hex')
  for (const { found, want, rcode: sent } of [
    { found: [composeDs(zone, key.dnskey, 2)], want: [] },
    { found: [composeDs(zone, key.dnskey, 1)], want: [/zone example\.org\.: .*RFC 9905/] },
    {
      found: [composeDs(zone, key.dnskey, 2), foreign],
      want: [/no key matches, with tag 12345; remove/],
    },
    { found: [foreign], want: [/no key matches, with tag 12345; validators reject the zone/] },
    { found: [], rcode: 5, want: [/the DS in the parent is not known: .*REFUSED/] },
  ]) {
    ds = found
    rcode = sent
    const checked = await new SetUp(dnssec, corefile).check()
    t.strictSame(checked.faults, [])
    t.match(checked.warnings, want)
    t.equal(checked.warnings.length, want.length)
  }
  const asked = parent.asked.length
  const offline = await new SetUp(dnssec, corefile).check(() => {}, true)
  t.strictSame(offline.warnings, [])
  t.equal(parent.asked.length, asked)
})
