import fs from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { systemTimers } from '../../../src/base/timers.ts'
import { FLAGS_KSK, FLAGS_ZSK, generatePrivateKey } from '../../../src/dns/dnssec/dnskey.ts'
import { printName, scanName } from '../../../src/dns/name/name.ts'
import * as keyDirectory from '../../../src/signing/keys/key-directory.ts'
import { readKeyFile } from '../../../src/signing/keys/key-file.ts'
import type { StoredKey } from '../../../src/signing/keys/key-store.ts'
import { needs, needsRoot, run } from '../../support/peer.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { until } from '../../support/until.ts'

const P256 = 13
const ZONE = scanName('example.org.')!

function openKeys(
  path: string,
  { KeyDirectory } = keyDirectory,
  generate = generatePrivateKey,
): keyDirectory.KeyDirectory {
  return new KeyDirectory({ path, clock: systemClock, timers: new FakeTimers(), generate })
}

/** The names of a folder without those of its folders. */
function filesOf(path: string): string[] {
  return fs
    .readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort()
}

async function faultsOf(path: string): Promise<string> {
  return (await openKeys(path).load()).faults.map((fault) => fault.print()).join('\n')
}

t.test('keys are made, loaded and retired', async (t) => {
  const path = join(temporaryDirectory(t), 'var', 'keys')
  const store = openKeys(path)
  t.strictSame(await store.load(), { keys: [], faults: [] }, 'the folder does not exist yet')
  const made: StoredKey[] = []
  for (const algorithm of [P256, 14, 15]) made.push(await store.create(ZONE, algorithm, FLAGS_KSK))
  const odd = scanName('\\.\\./a/b.example.')!
  made.push(await store.create(odd, P256, FLAGS_ZSK))
  const { keys, faults } = await openKeys(path).load()
  t.strictSame(faults, [])
  t.strictSame(
    keys.map(({ id, flags, algorithm, tag, dnskey }) => ({ id, flags, algorithm, tag, dnskey })),
    made
      .map(({ id, flags, algorithm, tag, dnskey }) => ({ id, flags, algorithm, tag, dnskey }))
      .sort((a, b) => (a.id < b.id ? -1 : 1)),
  )
  t.ok(keys.every(({ privateKey }) => privateKey?.type === 'private'))
  t.equal(fs.statSync(path).mode & 0o777, 0o700)
  for (const { id } of made) {
    t.equal(fs.statSync(join(path, `${id}.private`)).mode & 0o777, 0o600)
    t.equal(
      readKeyFile(join(path, id)).times.Created,
      keys.find((k) => k.id === id)?.times?.Created,
    )
  }
  await store.retire(made[0]!.id)
  await store.retire(made[0]!.id)
  t.equal((await store.load()).keys.length, 3)
  const names = ['key', 'private'].map((ending) => `${made[0]!.id}.${ending}`)
  t.strictSame(filesOf(join(path, 'removed')), names, 'nothing is deleted')
  for (const id of ['x', '../Kexample.org.+013+00001', 'K../../x.+013+00001', 'Kx.+013+00001'])
    await t.rejects(store.retire(id), { name: 'InputError' }, id)
})

t.test('a key whose tag another key has is made again', async (t) => {
  const path = temporaryDirectory(t)
  const keys = await Promise.all([1, 2, 3].map(() => generatePrivateKey(P256)))
  let made = 0
  const generate = async () => keys[Math.floor(made++ / 2)]!
  const store = openKeys(path, keyDirectory, generate)
  const first = await store.create(ZONE, P256, FLAGS_KSK)
  const second = await store.create(ZONE, P256, FLAGS_KSK)
  t.not(second.tag, first.tag)
  t.equal(made, 3)
  await store.retire(second.id)
  const third = await store.create(ZONE, P256, FLAGS_KSK)
  t.notOk([first.tag, second.tag].includes(third.tag), 'a retired key counts')
  const stuck = openKeys(path, keyDirectory, async () => keys[0]!)
  await t.rejects(stuck.create(ZONE, P256, FLAGS_KSK), { message: /all tags .* are taken/ })
  t.ok(await stuck.create(scanName('example.net.')!, P256, FLAGS_KSK), 'another zone')
})

t.test('keys that are refused, and those that are used nevertheless', async (t) => {
  const path = temporaryDirectory(t)
  const store = openKeys(path)
  const good = await store.create(ZONE, P256, FLAGS_KSK)
  const bad = await store.create(ZONE, P256, FLAGS_ZSK)
  const file = (id: string, ending: string): string => join(path, `${id}.${ending}`)
  const publicText = fs.readFileSync(file(bad.id, 'key'), 'utf8')
  const privateText = fs.readFileSync(file(bad.id, 'private'), 'utf8')
  const secret = /PrivateKey: (.*)/.exec(privateText)![1]!
  const otherId = 'Kexample.net.+013+00001'
  const upperId = good.id.replace('example', 'EXAMPLE')
  const cases: readonly [string, () => void, RegExp][] = [
    ['a mode', () => fs.chmodSync(file(bad.id, 'private'), 0o644), /run chmod 600 .*private/],
    ['no public file', () => fs.rmSync(file(bad.id, 'key')), /private has no public file K.*key;/],
    [
      'another zone',
      () =>
        fs.writeFileSync(file(bad.id, 'key'), publicText.replace(/^example.org/m, 'example.com')),
      /\.key:1: the file has the key Kexample\.com\..* of example\.com\., not the one/,
    ],
    [
      'another name',
      () => {
        fs.renameSync(file(bad.id, 'key'), file(otherId, 'key'))
        fs.renameSync(file(bad.id, 'private'), file(otherId, 'private'))
      },
      /Kexample\.net.*\.key:1: the file has the key Kexample\.org/,
    ],
    [
      'the private key of another key',
      () => fs.copyFileSync(file(good.id, 'private'), file(bad.id, 'private')),
      /private:1: the private key does not belong to the DNSKEY/,
    ],
    ['an empty private file', () => fs.writeFileSync(file(bad.id, 'private'), ''), /private:1: /],
    [
      'an empty public file',
      () => fs.writeFileSync(file(bad.id, 'key'), ''),
      /key:1: .* no DNSKEY/,
    ],
    [
      'an unknown algorithm',
      () => fs.writeFileSync(file(bad.id, 'key'), publicText.replace(' 3 13 ', ' 3 77 ')),
      /algorithm 77 is not supported; use one of /,
    ],
    [
      'also retired',
      () => {
        fs.mkdirSync(join(path, 'removed'))
        fs.copyFileSync(file(bad.id, 'key'), join(path, 'removed', `${bad.id}.key`))
      },
      /is also in removed, so it is retired; remove it from one/,
    ],
    [
      'a key twice, with another spelling of the zone',
      () => {
        for (const ending of ['key', 'private'])
          fs.copyFileSync(file(good.id, ending), file(upperId, ending))
      },
      /KEXAMPLE.*key has the zone, algorithm and tag of Kexample/,
    ],
    ['a folder', () => fs.mkdirSync(file(otherId, 'key')), /key is not a regular file/],
    ['a broken link', () => fs.symlinkSync('none', file(otherId, 'key')), /can't read .*ENOENT/],
  ]
  for (const [what, spoil, reason] of cases) {
    spoil()
    const { keys, faults } = await store.load()
    t.match(faults.map((fault) => fault.print()).join('\n'), reason, what)
    t.ok(
      faults.every((fault) => !fault.print().includes(secret)),
      `${what}: no secret`,
    )
    t.ok(
      keys.some(({ id }) => id === good.id),
      `${what}: the good key`,
    )
    t.equal(faults.length, 1, what)
    for (const id of [bad.id, otherId, upperId, 'removed'])
      for (const ending of ['', '.key', '.private'])
        fs.rmSync(join(path, `${id}${ending}`), { force: true, recursive: true })
    fs.writeFileSync(file(bad.id, 'key'), publicText)
    fs.writeFileSync(file(bad.id, 'private'), privateText, { mode: 0o600 })
    fs.chmodSync(file(bad.id, 'private'), 0o600)
    t.equal(await faultsOf(path), '')
  }
  fs.chmodSync(path, 0o777)
  t.match(await faultsOf(path), /any user can write .*; run chmod o-w/)
  t.match(await faultsOf(file(good.id, 'key')), /is not a directory/)
})

t.test('a public key without a private one is of another provider', async (t) => {
  const path = temporaryDirectory(t)
  const other = await openKeys(temporaryDirectory(t)).create(ZONE, P256, FLAGS_ZSK)
  const store = openKeys(path)
  await store.add(other, undefined, {})
  t.match((await store.load()).keys, [{ id: other.id, privateKey: undefined }])
  await t.rejects(store.add(other, other.privateKey, {}), {
    message: /has, or had, a key of example\.org\. with tag/,
  })
  await store.retire(other.id)
  t.strictSame(await store.load(), { keys: [], faults: [] })
})

t.test('the state of rolls is replaced in one step', async (t) => {
  const path = temporaryDirectory(t)
  const [one, other] = [openKeys(path), openKeys(path)]
  t.equal(await one.readState(ZONE), undefined)
  const add = (store: keyDirectory.KeyDirectory): Promise<void> =>
    store.editState(ZONE, (text = '') => `${text}x`)
  await Promise.all(Array.from({ length: 10 }, (_, i) => add(i % 2 === 0 ? one : other)))
  t.equal(await other.readState(ZONE), 'x'.repeat(10), 'no change is lost')
  await one.editState(ZONE, () => undefined)
  await t.rejects(
    one.editState(ZONE, () => fail()),
    /refused/,
  )
  t.equal(await other.readState(ZONE), 'x'.repeat(10))
  await one.editState(scanName('.')!, () => 'root')
  t.equal(await one.readState(scanName('.')!), 'root')
  t.strictSame(filesOf(path), ['rolls-.state', 'rolls-example.org.state'])
  fs.chmodSync(join(path, 'rolls-.state'), 0o666)
  await t.rejects(one.readState(scanName('.')!), { message: /any user can write/ })
})

function fail(): never {
  throw new Error('refused')
}

t.test('changes of other processes are reported, those of this one are not', async (t) => {
  const path = temporaryDirectory(t)
  const timers = new FakeTimers()
  const parts = { path, clock: new FakeClock(), timers }
  const store = new keyDirectory.KeyDirectory(parts)
  let reports = 0
  const stop = store.watch(() => reports++)
  const key = await store.create(ZONE, P256, FLAGS_KSK)
  await store.editState(ZONE, () => 'one')
  timers.advance(20_000)
  t.equal(reports, 0, 'its own changes')
  await openKeys(path).editState(ZONE, () => 'two')
  timers.advance(20_000)
  t.equal(reports, 1, 'a state')
  fs.chmodSync(join(path, `${key.id}.private`), 0o400)
  timers.advance(20_000)
  t.equal(reports, 2, 'permissions')
  fs.writeFileSync(join(path, 'README'), '')
  timers.advance(20_000)
  t.equal(reports, 2, 'a file of another kind')
  stop()
  await openKeys(path).retire(key.id)
  timers.advance(20_000)
  t.equal(reports, 2)

  let changed = false
  const real = new keyDirectory.KeyDirectory({ ...parts, timers: systemTimers })
  const end = real.watch(() => {
    changed = true
  })
  t.teardown(end)
  await openKeys(path).create(ZONE, P256, FLAGS_KSK)
  await until(() => changed, 'the report of the system')
})

/** Calls that change files. `chownSync` and `fchownSync` are only called if root works in a folder of another user. */
const CHANGES = [
  ...['mkdirSync', 'openSync', 'writeFileSync', 'fsyncSync', 'linkSync', 'renameSync'],
] as const

t.test('a call that fails leaves no part of a key, and the key that exists', async (t) => {
  const plan: FailurePlan = { step: 0, calls: 0 }
  const failing = await failingModule(t, plan)
  for (const work of ['create', 'retire', 'state'] as const) {
    for (let step = 1; ; step++) {
      const folder = temporaryDirectory(t)
      const path = join(folder, 'keys')
      const store = openKeys(path)
      const before = await store.create(ZONE, P256, FLAGS_ZSK)
      await store.editState(ZONE, () => 'before')
      Object.assign(plan, { step, calls: 0 })
      const faulty = openKeys(path, failing)
      const tried =
        work === 'create'
          ? faulty.create(ZONE, P256, FLAGS_KSK)
          : work === 'retire'
            ? faulty.retire(before.id)
            : faulty.editState(ZONE, () => 'after')
      const message = await tried.then(
        () => '',
        (error: Error) => error.message,
      )
      const what = `${work}, call ${step} fails`
      if (plan.calls < step) {
        t.equal(message, '', 'no call fails')
        break
      }
      t.match(message, /keys in .*ENOSPC: no space left/, what)
      const { keys, faults } = await openKeys(path).load()
      t.strictSame(faults, [], what)
      if (work !== 'retire')
        t.strictSame(
          keys.map(({ id }) => id),
          [before.id],
          what,
        )
      await store.editState(scanName('other.')!, () => '')
      const names = [
        ...filesOf(path),
        ...(work === 'retire' ? filesOrNone(join(path, 'removed')) : []),
      ]
      t.ok(names.includes(`${before.id}.private`), what)
      t.notOk(
        names.some((name) => /\.(?:new|next)$/.test(name)),
        what,
      )
      t.match(await store.readState(ZONE), work === 'state' ? /^(?:before|after)$/ : 'before', what)
    }
  }
})

function filesOrNone(path: string): string[] {
  return fs.existsSync(path) ? filesOf(path) : []
}

interface FailurePlan {
  /** Number of the call that fails. */
  step: number
  /** Number of calls so far. */
  calls: number
}

async function failingModule(t: Test, plan: FailurePlan): Promise<typeof keyDirectory> {
  const wrapped = CHANGES.map((name) => {
    const call = (...args: unknown[]): unknown => {
      // A file or folder that is only read.
      if (name === 'openSync' && args[1] !== 'wx') return Reflect.apply(fs[name], fs, args)
      plan.calls++
      if (plan.calls === plan.step) {
        const error = new Error(`ENOSPC: no space left on device, ${name}`)
        throw Object.assign(error, { code: 'ENOSPC', syscall: name })
      }
      return Reflect.apply(fs[name], fs, args)
    }
    return [name, call]
  })
  return t.mockImport<typeof keyDirectory>('../../../src/signing/keys/key-directory.ts', {
    'node:fs': { ...fs, ...Object.fromEntries(wrapped) },
  })
}

t.test('owners of files', needsRoot(), async (t) => {
  const path = temporaryDirectory(t)
  const [other, another] = [12_345, 12_346]
  const store = openKeys(path)
  const { id } = await store.create(ZONE, P256, FLAGS_KSK)
  fs.chownSync(join(path, `${id}.private`), other, other)
  t.match(
    await faultsOf(path),
    /private belongs to user 12345, not to user 0 that reads it; run chown 0 /,
  )
  fs.chownSync(path, other, other)
  t.equal(await faultsOf(path), '', 'root reads the keys of a server that runs as another user')
  const made = await store.create(ZONE, P256, FLAGS_ZSK)
  await store.editState(ZONE, () => 'state')
  for (const name of [`${made.id}.key`, `${made.id}.private`, 'rolls-example.org.state'])
    t.equal(fs.statSync(join(path, name)).uid, other, `${name} belongs to that user`)
  await store.retire(made.id)
  t.equal(fs.statSync(join(path, 'removed')).uid, other)
  fs.chownSync(join(path, `${id}.key`), another, another)
  t.match(await faultsOf(path), /key belongs to user 12346/)
})

t.test('a file system without hard links', async (t) => {
  const linkSync = (): never => {
    throw Object.assign(new Error('EPERM'), { code: 'EPERM', syscall: 'link' })
  }
  const linkless = await t.mockImport<typeof keyDirectory>(
    '../../../src/signing/keys/key-directory.ts',
    { 'node:fs': { ...fs, linkSync } },
  )
  const path = temporaryDirectory(t)
  const store = openKeys(path, linkless)
  const [one, other] = [
    await store.create(ZONE, P256, FLAGS_KSK),
    await store.create(ZONE, P256, FLAGS_KSK),
  ]
  await store.retire(one!.id)
  t.strictSame(filesOf(path), [`${other!.id}.key`, `${other!.id}.private`])
  t.strictSame(filesOf(join(path, 'removed')), [`${one!.id}.key`, `${one!.id}.private`])
  t.equal(await faultsOf(path), '')
})

t.test(
  'our keys sign with dnssec-signzone',
  needs('dnssec-signzone', 'dnssec-verify'),
  async (t) => {
    const path = temporaryDirectory(t)
    const store = openKeys(path)
    for (const algorithm of [8, P256, 14, 15]) {
      for (const flags of [FLAGS_KSK, FLAGS_ZSK]) await store.create(ZONE, algorithm, flags)
    }
    const zone = join(path, 'zone')
    fs.writeFileSync(zone, '$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n')
    for (const smart of [['-S'], []]) {
      const ids = smart.length > 0 ? [] : (await store.load()).keys.map(({ id }) => join(path, id))
      const include = smart.length > 0 ? [] : ids.map((id) => `$INCLUDE ${id}.key\n`)
      fs.appendFileSync(zone, include.join(''))
      const args = [
        ...smart,
        // The file `dsset-ZONE` is written into this directory.
        '-d',
        path,
        '-K',
        path,
        '-o',
        printName(ZONE),
        '-f',
        `${zone}.signed`,
        zone,
        ...ids,
      ]
      const signed = await run('dnssec-signzone', args)
      t.equal(signed.code, 0, signed.stderr)
      const verified = await run('dnssec-verify', ['-o', printName(ZONE), `${zone}.signed`])
      t.equal(verified.code, 0, verified.stderr)
      t.match(verified.stdout + verified.stderr, /Algorithm: ED25519: KSKs: 1 active/)
    }
  },
)
