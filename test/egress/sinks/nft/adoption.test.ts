import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { needs, needsRoot } from '../../../support/peer.ts'
import { until } from '../../../support/until.ts'
import { allowed, CLOSED, client, OPEN_NETWORK, Place, TABLE } from './place.ts'

// Own process: it makes namespaces of the kernel.
/** More take long on a busy machine. */
const MANY = Number(process.env.SEXTANT_ELEMENTS ?? 10_000)
const isPossible = { ...needsRoot(), ...needs('nft') }
const pair = (number: number, address: number) => ({
  client: `10.1.0.${number}`,
  address: `192.0.2.${address}`,
})

t.test('a restart adopts what the kernel has', isPossible, async (t) => {
  const place = await Place.create(t)
  const first = place.enforcer(t)
  await first.enforcer.setClients([client(1), client(2), client(3), client(4)])
  for (const number of [1, 2, 3, 4]) {
    await first.enforcer.allow(pair(number, 1), allowed('tcp 80', 'udp 5-9'))
    await first.enforcer.allow({ client: `fd01::${number}`, address: '::192.0.2.1' }, allowed())
  }
  await first.enforcer.allow(pair(1, 2), allowed())
  await first.enforcer.allow(pair(1, 3), allowed())
  await first.enforcer.close()
  t.equal((await place.elements()).length, 14, 'the table stays')
  t.equal(await first.enforcer.allow(pair(1, 4), allowed()), 'closed')

  const { enforcer, faults, repairs } = place.enforcer(t)
  void enforcer.setClients([client(1), client(2, OPEN_NETWORK), client(3, CLOSED, 2)])
  // What a pair is set to before the kernel is known.
  void enforcer.allow(pair(1, 3), [])
  t.equal(await enforcer.allow(pair(1, 9), allowed()), '')
  t.equal(enforcer.counts.transactions, 1)
  t.ok((await place.elements()).includes('10.1.0.1 . 192.0.2.3'), 'not before adopt')
  t.equal(await enforcer.adopt(), '')
  t.equal(await enforcer.allow(pair(1, 3), []), '')
  const kept = [
    '10.1.0.1 . 192.0.2.1 . tcp . 80',
    '10.1.0.1 . 192.0.2.1 . udp . 5-9',
    '10.1.0.1 . 192.0.2.2',
    '10.1.0.1 . 192.0.2.9',
    'fd01::1 . ::192.0.2.1',
  ]
  t.strictSame(await place.elements(), kept, 'neither other rules, nor another client, nor none')
  await enforcer.check()
  t.strictSame(await place.elements(), kept)
  t.equal(enforcer.allow(pair(1, 2), allowed()), undefined, 'it is in force')
  t.equal(await enforcer.allow(pair(1, 1), allowed('tcp 80')), '', 'adopted elements are replaced')
  t.strictSame(
    await place.elements(),
    kept.filter((text) => !text.includes('udp')),
  )
  t.strictSame([faults, repairs], [[], []])
  t.equal(enforcer.counts.resyncs, 0)
})

t.test('a restart removes addresses that may not be allowed any more', isPossible, async (t) => {
  const place = await Place.create(t)
  const first = place.enforcer(t)
  await first.enforcer.setClients([client(1)])
  await first.enforcer.allow({ client: '10.1.0.1', address: '169.254.169.254' }, allowed('tcp 80'))
  await first.enforcer.allow(pair(1, 1), allowed())
  await first.enforcer.close()
  const { enforcer } = place.enforcer(t)
  t.equal(await enforcer.setClients([client(1)]), '')
  t.equal(await enforcer.adopt(), '')
  t.equal(await enforcer.allow(pair(1, 2), allowed()), '')
  t.strictSame(await place.elements(), ['10.1.0.1 . 192.0.2.1', '10.1.0.1 . 192.0.2.2'])
})

t.test(
  'a restart with the same clients answers before it lists the table',
  isPossible,
  async (t) => {
    const place = await Place.create(t)
    const first = place.enforcer(t)
    const clients = [client(1), client(2, OPEN_NETWORK), client(3)]
    await first.enforcer.setClients(clients)
    await first.enforcer.allow(pair(1, 1), allowed('tcp 80', 'udp 5-9'))
    await first.enforcer.allow(pair(2, 1), allowed())
    await first.enforcer.allow(pair(3, 1), allowed())
    await first.enforcer.close()
    const before = await place.elements()
    const { enforcer, faults, repairs } = place.enforcer(t)
    t.equal(await enforcer.setClients(clients.slice(0, 2)), '')
    t.equal(enforcer.size, 1, 'only the range')
    t.equal(await enforcer.allow(pair(1, 1), allowed('tcp 80')), '')
    t.equal(await enforcer.allow(pair(1, 2), allowed('udp 3-7')), '')
    t.equal(
      await enforcer.allow(pair(1, 1), allowed('tcp 80', 'udp 1-6')),
      '',
      'it replaces a range',
    )
    await enforcer.glance()
    t.equal(await enforcer.adopt(), '')
    t.equal(await enforcer.allow(pair(1, 9), allowed()), '')
    t.strictSame(await place.elements(), [
      '10.1.0.1 . 192.0.2.1 . tcp . 80',
      '10.1.0.1 . 192.0.2.1 . udp . 1-6',
      '10.1.0.1 . 192.0.2.2 . udp . 3-7',
      '10.1.0.1 . 192.0.2.9',
      '10.1.0.2 . 192.0.2.1',
    ])
    t.equal(before.length, 4)
    t.equal(enforcer.allow(pair(2, 1), allowed()), undefined, 'it was in force')
    t.strictSame([faults, repairs, enforcer.counts.resyncs], [[], [], 0])
  },
)

t.test('until the list of clients is complete, other clients stay', isPossible, async (t) => {
  const place = await Place.create(t)
  const first = place.enforcer(t)
  await first.enforcer.setClients([client(1), client(2), client(3)])
  await first.enforcer.allow(pair(2, 1), allowed())
  await first.enforcer.allow(pair(3, 1), allowed())
  await first.enforcer.close()

  const { enforcer, repairs } = place.enforcer(t)
  t.equal(await enforcer.setClients([client(1)], false), '')
  t.equal((await place.clients()).length, 6)
  t.strictSame(await place.elements(), ['10.1.0.2 . 192.0.2.1', '10.1.0.3 . 192.0.2.1'])
  await enforcer.glance()
  await enforcer.check()
  t.strictSame(repairs, [])
  // Their chains are lost with the table.
  await place.nft('flush', 'ruleset')
  await enforcer.glance()
  await until(async () => (await place.clients()).length === 6, 'all clients')
  t.equal(await enforcer.setClients([client(1), client(2)]), '')
  t.strictSame(await place.clients(), ['10.1.0.1', '10.1.0.2', 'fd01::1', 'fd01::2'])
  t.notMatch(await place.nft('list', 'map', 'inet', TABLE, 'profiles4'), /10\.1\.0\.3/)
})

t.test('two processes side by side', isPossible, async (t) => {
  const place = await Place.create(t)
  const [a, b] = [place.enforcer(t), place.enforcer(t)]
  for (const { enforcer } of [a, b]) await enforcer.setClients([client(1), client(2)])
  await a.enforcer.allow(pair(1, 1), allowed())
  await b.enforcer.allow(pair(1, 2), allowed('tcp 1-9'))
  await b.enforcer.allow(pair(1, 1), allowed('tcp 443'))
  const all = [
    '10.1.0.1 . 192.0.2.1',
    '10.1.0.1 . 192.0.2.1 . tcp . 443',
    '10.1.0.1 . 192.0.2.2 . tcp . 1-9',
  ]
  t.strictSame(await place.elements(), all, 'none removes what the other has added')
  const compare = async () => {
    for (const { enforcer } of [a, b]) {
      await enforcer.glance()
      await enforcer.check()
      await enforcer.setClients([client(1), client(2)])
    }
  }
  await compare()
  t.strictSame(await place.elements(), all)
  await a.enforcer.allow(pair(1, 1), [])
  await compare()
  await compare()
  t.strictSame(await place.elements(), all.slice(1), 'what one removes, the other does not add')
  t.strictSame([...a.repairs, ...b.repairs], [])
  for (const { enforcer } of [a, b]) t.equal(await enforcer.setClients([client(1)]), '')
  for (const { enforcer } of [a, b]) t.equal(await enforcer.setClients([]), '')
  t.strictSame([await place.elements(), await place.clients()], [[], []])
  t.strictSame([...a.faults, ...b.faults], [])
})

t.test('nft is killed', isPossible, async (t) => {
  const place = await Place.create(t)
  const file = join(t.testdir({ pid: '' }), 'pid')
  const note = 'for word; do [ "$word" = -i ] && echo $$ >"$0"; done; exec "$@"'
  const { enforcer, timers, faults } = place.enforcer(t, 100_000, [
    'sh',
    '-c',
    note,
    file,
    ...place.command,
  ])
  await enforcer.setClients([client(1)])
  await enforcer.allow(pair(1, 1), allowed())
  process.kill(Number(readFileSync(file, 'utf8')), 'SIGKILL')
  await until(() => faults.length > 0, 'the end')
  t.match(faults[0], 'nft ended with SIGKILL')
  t.equal(enforcer.allow(pair(1, 1), allowed()), undefined, 'the kernel still has it')
  const added = enforcer.allow(pair(1, 2), allowed())
  await timers.advance(100)
  t.equal(await added, '')
  await until(() => faults.length > 1, 'the recovery')
  t.equal(faults[1], '')
  t.strictSame(await place.elements(), ['10.1.0.1 . 192.0.2.1', '10.1.0.1 . 192.0.2.2'])
  t.equal(enforcer.counts.resyncs, 1, 'only the first transaction has made the table')

  // While a transaction is in progress.
  for (let address = 10; address < 20; address++) {
    const pid = Number(readFileSync(file, 'utf8'))
    const first = enforcer.allow(pair(1, address), allowed())
    process.kill(pid, 'SIGKILL')
    await first
    await timers.advance(100)
    t.equal((await enforcer.allow(pair(1, address + 100), allowed())) ?? '', '')
  }
  t.equal((await place.elements()).length, 22)
})

t.test('many elements', isPossible, async (t) => {
  const place = await Place.create(t)
  const first = place.enforcer(t, 200_000)
  const clients = Array.from({ length: 100 }, (_, i) => client(i + 1))
  await first.enforcer.setClients(clients)
  let startMs = performance.now()
  const waits: (Promise<string> | undefined)[] = []
  const log = (what: string) => t.comment(`${what}: ${(performance.now() - startMs).toFixed(0)} ms`)
  for (let i = 0; i < MANY; i++) {
    const address = `198.18.${(i >> 8) & 255}.${i & 255}`
    waits.push(
      first.enforcer.allow({ client: `10.1.0.${(i % 100) + 1}`, address }, [
        { ports: { protocol: 'tcp', first: 443, last: 443 }, endMs: performance.now() + 600_000 },
      ]),
    )
  }
  t.ok((await Promise.all(waits)).every((fault) => fault === ''))
  log(`${MANY} elements committed`)
  startMs = performance.now()
  await first.enforcer.check()
  log('compared')
  // The kernel's listing lacks elements of a hash table that it is making larger: they are written again.
  t.equal(first.enforcer.counts.missedChecks, 0)
  await first.enforcer.close()
  const { enforcer } = place.enforcer(t, 200_000)
  startMs = performance.now()
  t.equal(await enforcer.setClients(clients), '')
  log('ready')
  t.equal(await enforcer.adopt(), '')
  log('adopted')
  t.ok(enforcer.size > MANY / 2, `${enforcer.size} elements`)
  await place.nft('flush', 'ruleset')
  startMs = performance.now()
  await enforcer.check()
  await until(() => enforcer.counts.resyncs === 1, 'the table')
  log('written again')
})

t.test(
  'two processes with other options: the one that stays has its own in the end',
  isPossible,
  async (t) => {
    const place = await Place.create(t)
    const sizeOf = async (): Promise<string> => {
      return /size (\d+)/.exec(await place.nft('list', 'set', 'inet', TABLE, 'any4'))?.[1] ?? 'none'
    }
    const old = place.enforcer(t, 1000)
    await old.enforcer.setClients([client(1)])
    await old.enforcer.allow(pair(1, 1), allowed())
    const young = place.enforcer(t, 2000)
    await young.enforcer.setClients([client(1)])
    await young.enforcer.glance()
    t.strictSame(young.repairs, [])
    await old.enforcer.glance()
    t.match(old.repairs, [/^chain options_/])
    await until(async () => (await sizeOf()) === '2000', 'the options of the old process')
    await old.enforcer.close()
    await young.enforcer.glance()
    t.match(young.repairs, [/^chain options_/])
    await until(async () => (await sizeOf()) === '4000', 'the options of the new process')
    t.equal((await place.elements()).length, 1, 'what was allowed stays')
    const chains = await place.nft('list', 'table', 'inet', TABLE)
    t.equal(chains.match(/chain options_/g)?.length, 1)
  },
)
