import { setImmediate as settled } from 'node:timers/promises'
import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { NO_METRICS } from '../../../src/base/telemetry/metrics.ts'
import { matchesDs } from '../../../src/dns/dnssec/ds.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import type { KeyStore } from '../../../src/signing/keys/key-store.ts'
import { KeyManager, type KeyManagerOptions } from '../../../src/signing/rolls/key-manager.ts'
import { DEFAULT_POLICY } from '../../../src/signing/rolls/policy.ts'
import {
  type RollRequest,
  requestRoll,
  scanRollState,
} from '../../../src/signing/rolls/roll-state.ts'
import type { ZoneKeys } from '../../../src/signing/zone-keys.ts'
import { recordLog } from '../../support/recorded-log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { MemoryKeyStore } from './memory-key-store.ts'

const ZONE = scanName('example.org.')!
const PARENT = { host: '192.0.2.1', port: 53 }

/** Servers with one key store, which publish at once what they should sign, and a parent that follows CDS at once. */
class Site {
  readonly store = new MemoryKeyStore()
  readonly clock = new FakeClock()
  readonly timers = new FakeTimers()
  readonly managers: KeyManager[] = []
  readonly logs: string[][] = []
  readonly notified: string[] = []
  ds: readonly Uint8Array[] = []
  parentFault = ''
  isPublishing = true

  async open(options: Partial<KeyManagerOptions> = {}): Promise<KeyManager> {
    const { log, lines } = recordLog()
    const { store, clock, timers } = this
    const manager = new KeyManager({
      store,
      clock,
      timers,
      log,
      zones: [ZONE],
      policy: DEFAULT_POLICY,
      parents: [PARENT],
      metrics: NO_METRICS,
      askParentDs: async () =>
        this.parentFault === '' ? { rdata: this.ds, ttlSeconds: 3600 } : this.parentFault,
      notifyParent: async () => {
        this.notified.push('CDS')
        this.#followCds(manager.find(ZONE)!)
      },
      ...options,
    })
    manager.subscribe(() => this.#publish(manager))
    this.managers.push(manager)
    this.logs.push(lines)
    await manager.start()
    await this.settle()
    return manager
  }

  #publish(manager: KeyManager): void {
    const keys = manager.find(ZONE)
    if (keys !== undefined && this.isPublishing) manager.notePublished(ZONE, keys, 3600)
  }

  #followCds({ cds }: ZoneKeys): void {
    this.ds = cds.length === 1 && cds[0]!.length === 5 ? [] : cds
  }

  /** Generating keys is no timer: waits for it as long as something happens. */
  async settle(): Promise<void> {
    for (let quiet = 0, before = ''; quiet < 20; quiet++) {
      await settled()
      const now = `${[...this.store.states.values()]} ${this.store.keys.size}`
      if (now.includes('claim') || now !== before) quiet = 0
      before = now
    }
  }

  async pass(hours: number): Promise<void> {
    const stepMs = Math.min(hours, 0.5) * 3_600_000
    for (let passedMs = 0; passedMs < hours * 3_600_000; passedMs += stepMs) {
      this.clock.pass(stepMs)
      await this.timers.advance(stepMs)
      await this.settle()
    }
  }

  async request(request: RollRequest): Promise<void> {
    await this.store.editState(ZONE, (text) => requestRoll(text, request))
    this.store.notify()
    await this.settle()
  }

  close(): void {
    for (const manager of this.managers) manager.stop()
  }
}

const steps = (lines: readonly string[]): string[] =>
  lines
    .filter((line) => line.startsWith('[INFO]') && !line.includes(': next: '))
    .map((line) => line.replace(/^\[INFO\] keys of example\.org\.: |; next.*/g, ''))
    .map((line) => line.replace(/SK \d+/g, 'SK N'))

t.test('makes the first key, gets the DS, rolls on request, and follows the parent', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const manager = await site.open()
  const first = manager.find(ZONE)!
  t.match(first, { dnskeys: { length: 1 }, cds: [], cdnskeys: [], dnskeyTtlSeconds: 3600 })
  t.match(first.zoneSigners, first.keySigners)
  t.match(
    manager.notes[0],
    /^keys of example\.org\.: next: ask the parent for the DS of CSK \d+ at /,
  )
  await site.pass(4)
  const withCds = manager.find(ZONE)!
  t.equal(withCds.cds.length, 1)
  t.ok(matchesDs(ZONE, first.dnskeys[0]!, withCds.cds[0]!))
  t.strictSame(withCds.cdnskeys, first.dnskeys)
  t.strictSame(site.notified, ['CDS'])
  t.strictSame(manager.notes, [])
  await site.request({ kind: 'roll', role: 'csk' })
  t.equal(manager.find(ZONE)!.dnskeys.length, 2)
  await site.pass(60)
  const second = manager.find(ZONE)!
  t.equal(second.dnskeys.length, 1)
  t.not(Buffer.compare(second.dnskeys[0]!, first.dnskeys[0]!), 0)
  t.equal(site.store.removed.length, 1)
  t.equal(site.store.keys.size, 1)
  t.strictSame(manager.problems, [])
  t.strictSame(steps(site.logs[0]!), [
    'use CSK N, sign with CSK N, publish the DNSKEY of CSK N',
    'ask the parent for the DS of CSK N',
    'roll CSK N as requested',
    'use CSK N, publish the DNSKEY of CSK N',
    'sign with CSK N instead of CSK N, ask the parent for the DS of CSK N',
    'ask the parent to remove the DS of CSK N',
    'remove the DNSKEY of CSK N',
    'CSK N is out of use',
  ])
  await site.request({ kind: 'delegation', isSigned: false })
  t.strictSame(manager.find(ZONE)!.cds, [Uint8Array.of(0, 0, 0, 0, 0)])
  t.strictSame(manager.find(ZONE)!.cdnskeys, [Uint8Array.of(0, 0, 3, 0, 0)])
})

t.test('several servers with one store do each step once', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const opened = await Promise.all([site.open(), site.open(), site.open()])
  t.equal(site.store.keys.size, 1)
  const follow = async (hours: number): Promise<void> => {
    for (let i = 0; i < hours; i++) {
      await site.pass(1)
      site.store.notify()
      await site.settle()
    }
  }
  await follow(6)
  await site.request({ kind: 'roll', role: 'csk' })
  await follow(60)
  t.equal(site.store.removed.length, 1)
  t.equal(site.store.keys.size, 1)
  const [one, ...others] = opened.map((manager) => manager.find(ZONE))
  for (const other of others) t.strictSame(other?.dnskeys, one?.dnskeys)
  const done = site.logs.flatMap((lines) => steps(lines))
  t.equal(new Set(done).size, done.length, done.join('\n'))
})

t.test('a server that may not change keys follows', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  let mayChange = false
  const follower = await site.open({ mayChange: () => mayChange })
  t.equal(follower.find(ZONE), undefined)
  t.equal(site.store.keys.size, 0)
  const leader = await site.open()
  site.store.notify()
  await site.settle()
  t.strictSame(follower.find(ZONE), leader.find(ZONE))
  leader.stop()
  mayChange = true
  const { dnskeys } = follower.find(ZONE)!
  await site.request({ kind: 'roll', role: 'csk' })
  t.not(Buffer.compare(follower.find(ZONE)!.dnskeys[0]!, dnskeys[0]!), 0)
})

t.test('a confirmation of the DS counts once all servers have the CDS', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const manager = await site.open({ parents: [] })
  for (let i = 0; i < 240 && manager.find(ZONE)!.cds.length === 0; i++) await site.pass(1 / 60)
  const state = () => scanRollState([...site.store.states.values()][0]!)
  const ids = state().ds.keys
  t.equal(state().ds.isKnown, false)
  await site.request({ kind: 'published', ids })
  t.equal(state().ds.isKnown, false)
  t.match(site.logs[0]!.at(-1), /ignore 'request published .*': it came before all servers/)
  await site.pass(0.1)
  await site.request({ kind: 'published', ids })
  t.ok(state().ds.isKnown)
})

t.test('keys of other providers', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const manager = await site.open()
  await site.pass(4)
  for (const flags of [256, 257]) {
    const key = await site.store.create(ZONE, 13, flags)
    site.store.keys.set(key.id, { ...key, privateKey: undefined })
  }
  site.store.notify()
  await site.settle()
  const keys = manager.find(ZONE)!
  t.match(keys, { dnskeys: { length: 3 }, cds: { length: 2 }, cdnskeys: { length: 2 } })
  t.match(keys, { keySigners: { length: 1 }, zoneSigners: { length: 1 } })
  await site.pass(1)
  t.strictSame(manager.problems, [], 'the parent may have the DS of both')
})

t.test('faults: the zone stays signed with what it has', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  site.store.fault = 'no space left on device'
  const manager = await site.open()
  const problems = (): string[] =>
    manager.problems.flatMap((group) => [...group.problems].map(({ reason }) => reason))
  t.match(problems(), [/no space left on device/])
  t.equal(manager.find(ZONE), undefined)
  site.store.fault = ''
  await site.pass(6)
  t.strictSame(problems(), [])
  const keys = manager.find(ZONE)!
  t.equal(keys.cds.length, 1)

  for (const isAway of [true, false]) {
    site.store.isAway = isAway
    site.store.notify()
    await site.settle()
    t.equal(manager.find(ZONE), keys)
    t.strictSame(problems(), isAway ? ['the store is away'] : [])
  }

  const [stored] = site.store.keys.values()
  site.store.keys.clear()
  const place = { file: 'Kexample.org.+013+1.private', line: 3 }
  site.store.faults = [new InputError(place, 'others can read it')]
  site.store.notify()
  await site.settle()
  t.equal(manager.find(ZONE), keys)
  t.match(problems(), [
    /^Kexample\.org\.\+013\+1\.private:3: others can read it$/,
    /the store lacks private keys in use: Kexample.org/,
  ])
  site.store.keys.set(stored!.id, stored!)
  site.store.faults = []
  site.store.notify()
  await site.settle()
  t.strictSame(problems(), [])

  site.parentFault = '192.0.2.1:53: timed out'
  await site.request({ kind: 'roll', role: 'csk' })
  await site.pass(80)
  t.equal(manager.find(ZONE)!.cds.length, 2, 'the DS of both keys')
  t.match(problems(), [/the DS in the parent is not known: 192.0.2.1:53: timed out/])
  site.parentFault = ''
  site.ds = [...site.ds, Buffer.from('30390d0200', 'hex')]
  await site.pass(1)
  t.match(problems(), [/the parent has DS records that no key matches, with tag 12345/])

  site.ds = [Buffer.from('30390d0100', 'hex')]
  await site.pass(1)
  t.match(problems(), [/no key matches.*sextant keys ds example.org. prints.*RFC 9905.*tag 12345/])
  site.ds = []
  await site.pass(80)
  t.match(problems(), [/the parent has no DS records, so validators treat the zone as unsigned/])
  site.ds = [...manager.find(ZONE)!.cds, Buffer.from('30390d0200', 'hex')]
  await site.pass(1)

  site.store.states.set([...site.store.states.keys()][0]!, 'sextant key rolls 1\nnonsense\n')
  site.store.notify()
  await site.settle()
  t.match(problems(), [/has an invalid line 2/, /no key matches/])
  t.equal(manager.find(ZONE)!.cds.length, 2)
})

t.test('a store that became empty: no new keys are made, and the zone stays signed', async (t) => {
  for (const mayChange of [() => true, () => false]) {
    const site = new Site()
    t.teardown(() => site.close())
    const leader = await site.open()
    const manager = mayChange() ? leader : await site.open({ mayChange })
    if (manager !== leader) leader.stop()
    const keys = manager.find(ZONE)!
    site.store.keys.clear()
    site.store.states.clear()
    site.store.notify()
    await site.settle()
    t.equal(manager.find(ZONE), keys)
    t.equal(site.store.keys.size, 0)
    const [reason] = manager.problems.flatMap(({ problems }) =>
      [...problems].map((one) => one.reason),
    )
    t.match(reason, /the key store has lost the state of the rolls; restore a backup of it/)
    t.match(reason, /; the zone stays signed with the keys it has$/)
  }
})

t.test('a follower loads keys that were made after it had read the store', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  await site.open()
  const { store } = site
  const loaded: number[] = []
  const slow: KeyStore = {
    load: async () => {
      const found = await store.load()
      loaded.push(found.keys.length)
      return loaded.length === 1 ? { keys: [], faults: [] } : found
    },
    create: (zone, algorithm, flags) => store.create(zone, algorithm, flags),
    readState: (zone) => store.readState(zone),
    editState: (...args) => store.editState(...args),
    retire: (id) => store.retire(id),
    watch: (listener) => store.watch(listener),
  }
  const follower = await site.open({ store: slow, mayChange: () => false })
  t.equal(follower.find(ZONE)?.dnskeys.length, 1)
  t.strictSame(follower.problems, [])
  t.equal(loaded.length, 2)
})

t.test('a clock that is put forward ends no wait', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const manager = await site.open()
  await site.pass(4)
  const { tag } = manager.find(ZONE)!.zoneSigners[0]!
  await site.request({ kind: 'roll', role: 'csk' })
  site.clock.nowMs += 40 * 24 * 3_600_000
  await site.pass(1)
  t.equal(manager.find(ZONE)!.zoneSigners[0]!.tag, tag)
  t.equal(manager.find(ZONE)!.cds.length, 1, 'the DNSKEY is not known everywhere')
  await site.pass(2)
  t.equal(manager.find(ZONE)!.cds.length, 2)
})

t.test('without a signed version, a roll waits and says so', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  site.isPublishing = false
  const manager = await site.open()
  await site.pass(30)
  t.strictSame(manager.find(ZONE)!.cds, [])
  const [group] = manager.problems
  t.match([...group!.problems][0]!.reason, /no version of the zone that the current keys signed/)
  t.match(manager.notes, [/wait until a version signed with these keys is served/])
})

t.test('a zone is added later', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const manager = await site.open()
  const zone = scanName('example.net.')!
  t.equal(manager.find(zone), undefined)
  manager.manage(zone)
  manager.manage(zone)
  await until(() => manager.find(zone) !== undefined, 'keys')
  t.equal(site.store.keys.size, 2)
})

t.test('the notes of many zones name the first ones', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const zones = Array.from({ length: 12 }, (_, i) => scanName(`z${i}.example.org.`)!)
  const manager = await site.open({ zones })
  t.equal(manager.notes.length, 11)
  t.equal(manager.notes.at(-1), 'and 2 more zones')
})

t.test('once it waits for a DS, it asks the parent each minute', async (t) => {
  const site = new Site()
  t.teardown(() => site.close())
  const manager = await site.open({ notifyParent: async () => {} })
  const minutes = async (count: number): Promise<void> => {
    for (let i = 0; i < count; i++) {
      site.clock.pass(60_000)
      await site.timers.advance(60_000)
      await site.settle()
    }
  }
  for (let i = 0; i < 300 && manager.find(ZONE)!.cds.length === 0; i++) await minutes(1)
  t.match(manager.notes, [/wait until the parent has the DS/])
  t.match(site.logs[0], [
    / use CSK \d+, .*; next: wait until a version/,
    /\.: next: ask the parent for the DS of CSK \d+ at /,
    /\.: ask the parent for the DS of CSK \d+; next: wait until the parent has/,
  ])
  site.ds = manager.find(ZONE)!.cds
  // The DS counts when all servers of the zone have the CDS: after 5 minutes.
  await minutes(8)
  t.strictSame(manager.notes, [])
})

t.test('zones that make their keys at one time share readings of the store', async (t) => {
  const site = new Site()
  const zones = Array.from({ length: 64 }, (_, i) => scanName(`zone${i}.example.`)!)
  let readings = 0
  const load = site.store.load.bind(site.store)
  site.store.load = async () => {
    readings++
    // As long as a directory takes.
    await new Promise((resolve) => setTimeout(resolve, 20))
    return load()
  }
  const manager = await site.open({ zones })
  await until(() => zones.every((zone) => manager.find(zone) !== undefined), 'all keys')
  t.ok(readings < zones.length / 2, `${readings} readings`)
  for (const zone of zones) t.equal(manager.find(zone)!.dnskeys.length, 1)
  manager.stop()
})
