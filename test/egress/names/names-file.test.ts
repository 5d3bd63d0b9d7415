import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import { NAME_LIMITS_DEFAULT, NameStore } from '../../../src/egress/names/name-store.ts'
import { printNames, type StoredName, storedNames } from '../../../src/egress/names/names-file.ts'
import { StateFile } from '../../../src/persist/state-file.ts'
import { createLogger } from '../../../src/telemetry/log.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const name = scanName('www.example.')!

function learn(store: NameStore, atMs: number): void {
  const seen = { firstSeenMs: atMs, lastSeenMs: atMs }
  const ends = { endMs: atMs + 60_000, chainEndMs: atMs + 30_000 }
  const ttls = { ttlSeconds: 60, chainTtlSeconds: 30 }
  const base = { server: '192.0.2.53:53', chain: ['a\\032b.example.'], ...seen, ...ends, ...ttls }
  store.observe(
    {
      name,
      family: 2,
      atMs,
      server: '',
      kind: 'answer',
      facts: [
        { ...base, family: 1, address: '192.0.2.1' },
        { ...base, family: 2, address: '2001:db8::1', server: '', chain: [] },
      ],
    },
    ['s'],
  )
}

function fileIn(folder: string, clock: FakeClock, store: NameStore) {
  const lines: string[] = []
  const file = new StateFile({
    path: join(folder, 'names'),
    kind: storedNames(clock),
    log: createLogger(
      'egress',
      (line) => lines.push(line),
      () => false,
    ),
    clock,
    timers: new FakeTimers(),
    print: () => printNames(store.all(), clock),
  })
  return { file, lines }
}

t.test('facts survive a restart, with the time that passed meanwhile', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'names-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const clock = new FakeClock()
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  learn(store, clock.monotonic())
  const failed = { name, family: 2 as const, atMs: clock.monotonic() + 500, server: '' }
  store.observe({ ...failed, kind: 'failed', reason: 'timed out', isReply: false }, ['s'])
  clock.pass(2000)
  const before = fileIn(folder, clock, store)
  before.file.noteChange()
  before.file.close()

  const next = new FakeClock()
  next.nowMs = clock.nowMs + 10_000
  next.monotonicMs = 50
  const restored = new NameStore(NAME_LIMITS_DEFAULT)
  const { file, lines } = fileIn(folder, next, restored)
  const stored = file.open()
  t.strictSame(lines, [])
  for (const { facts, wire } of stored ?? []) restored.merge(facts, wire)
  restored.rehold(() => ['s'])
  const shift = next.monotonicMs - 10_000 - clock.monotonicMs
  const [old, found] = [store.get('www.example.'), restored.get('www.example.')]
  for (const [address, fact] of old?.addresses ?? []) {
    const { firstSeenMs, lastSeenMs, endMs, chainEndMs, ...rest } = fact
    t.strictSame(found?.addresses.get(address), {
      ...rest,
      firstSeenMs: firstSeenMs + shift,
      lastSeenMs: lastSeenMs + shift,
      endMs: endMs + shift,
      chainEndMs: chainEndMs + shift,
    })
  }
  const failures = found?.outcomes[2].failures
  t.strictSame([failures?.count, failures?.reason], [1, 'timed out'])
  t.equal(found?.outcomes[1].answeredMs, Number.NEGATIVE_INFINITY)
  t.equal(found?.outcomes[2].answeredMs, (old?.outcomes[2].answeredMs ?? 0) + shift)
})

t.test('a clock that steps back gives no address more than its TTL', async (t) => {
  const clock = new FakeClock()
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  learn(store, clock.monotonic())
  const lines = [...printNames(store.all(), clock)].join('').trimEnd().split('\n')
  clock.nowMs -= 86_400_000
  const scanned = storedNames(clock).scan(lines)
  const stored = Array.isArray(scanned) ? (scanned as readonly StoredName[])[0] : undefined
  t.equal(stored?.facts.addresses.get('192.0.2.1')?.endMs, clock.monotonic() + 60_000)
})

t.test('a damaged file is ignored', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'names-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const clock = new FakeClock()
  const store = new NameStore(NAME_LIMITS_DEFAULT)
  learn(store, clock.monotonic())
  const { file } = fileIn(folder, clock, store)
  file.noteChange()
  file.close()
  const path = join(folder, 'names')
  writeFileSync(path, readFileSync(path, 'utf8').replace('192.0.2.1', '192.0.2.9'))
  const again = fileIn(folder, clock, store)
  t.equal(again.file.open(), undefined)
  t.match(again.lines.join(), 'each name is resolved again')
})

t.test('lines of another format are refused', async (t) => {
  const { scan } = storedNames(new FakeClock())
  const good = 'address 192.0.2.1 1 2 60 60 60000 60000 -'
  t.ok(scan(['name a.', good]))
  const bad = [
    good,
    'name a..b',
    'other',
    'address 192.0.2.256 1 2 60 60 60000 60000 -',
    'address 192.0.2.1 1 2 60 60 60000 60000',
    'address 192.0.2.1 1 -2 60 60 60000 60000 -',
    'address 192.0.2.1 1 2 6e1 60 60000 60000 -',
    'asked 5 1',
    'asked 4 x',
    'asked 4 1 1 2 3',
    'asked 4 1 1 2 3 4 NXDOMAIN more',
  ]
  for (const line of bad) t.equal(scan(line === good ? [line] : ['name a.', line]), undefined, line)
})
