import {
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EdeCode } from '../../../src/dns/iana/options.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { partsOf } from '../../../src/plugin/description.ts'
import { kuadrant } from '../../../src/plugins/kuadrant/setup.ts'
import { probeManifest, recordManifest } from '../../support/manifest.ts'
import { SetUp, setupError } from '../../support/setup.ts'
import { transaction } from '../../support/transaction.ts'
import { until } from '../../support/until.ts'

// Long: it starts many servers.

const ZONE = 'k.example.com.'

const manifest = (name: string, last: number) => recordManifest(name, `192.0.2.${last}`)

/** A directory of manifests with a snapshot beside it, and the lives of a block over them. */
function place(t: Test, files: Record<string, string>) {
  const directory = t.testdir({ zones: files })
  const zones = join(directory, 'zones')
  const snapshot = join(directory, 'snapshot')
  const start = async (properties = '', nowMs?: number) => {
    const corefile = `kuadrant {\n manifests ${zones}\n snapshot ${snapshot} 1s\n${properties}\n}`
    const setUp = new SetUp(kuadrant, corefile, [ZONE])
    setUp.clock.nowMs = nowMs ?? setUp.clock.nowMs
    await setUp.start()
    let isOver = false
    const end = async (): Promise<void> => {
      if (!isOver) await setUp.exit()
      isOver = true
    }
    t.teardown(end)
    const handler = setUp.handler()
    /** The last octet of the address; -1 = there is none. */
    const ask = (name: string): number => {
      const tx = transaction({ name: `${name}.${ZONE}`, type: RRType.A })
      handler.serve(tx)
      const { response } = tx
      return response.count > 0 && response.type[0] === RRType.A
        ? response.rdataBytes[0]![response.rdataOffset[0]! + 3]!
        : -1
    }
    const note = (): string => setUp.readiness[0]!.note?.() ?? ''
    const unready = (): string => setUp.readiness[0]!.check()
    const caughtUp = () => until(() => note() === '', 'the records to be read')
    /** The extended error of the answer, and of one for a name that does not exist; -1 = none. */
    const noted = (): number[] => {
      return ['a', 'nowhere'].map((label) => {
        const tx = transaction({ name: `${label}.${ZONE}`, type: RRType.A })
        handler.serve(tx)
        return tx.response.edeCode
      })
    }
    return { setUp, ask, noted, note, unready, caughtUp, end, lines: setUp.lines }
  }
  const write = (file: string, text: string) => writeFileSync(join(zones, file), text)
  return { start, write, zones, snapshot }
}

t.test('a snapshot that may lack drains is not used', async (t) => {
  const { start, zones } = place(t, { 'a.yaml': manifest('a', 1) })
  const file = join(zones, '..', 'drains')
  const properties = ` drain ${file}\n all-down closed`
  const first = await start(properties)
  t.equal(first.ask('a'), 1)
  await first.end()
  writeFileSync(file, 'record:default/a until=2020-01-01T00:00:00Z\n')
  const second = await start(properties)
  t.match(second.lines.join('\n'), /snapshot .* loaded in/, 'the drain has ended')
  t.equal(second.ask('a'), 1)
  await second.caughtUp()
  await second.end()
  writeFileSync(file, 'record:default/a\n')
  const third = await start(properties)
  t.equal(third.ask('a'), -1, 'the first answer')
  t.match(
    third.lines.join('\n'),
    /snapshot .* is not used: drains may have begun after it was taken/,
  )
})

t.test('a snapshot of the future may lack drains: the clock was set back', async (t) => {
  const { start, zones } = place(t, { 'a.yaml': manifest('a', 1) })
  const file = join(zones, '..', 'drains')
  const properties = ` drain ${file}\n all-down closed`
  const first = await start(properties, Date.now() + 7_200_000)
  t.equal(first.ask('a'), 1)
  await first.end()
  const second = await start(properties, Date.now())
  t.match(second.lines.join('\n'), /snapshot .* loaded in/, 'nothing is drained')
  await second.caughtUp()
  await second.end()
  writeFileSync(file, 'record:default/a\n')
  const third = await start(properties, Date.now())
  t.match(third.lines.join('\n'), /snapshot .* is not used: drains may have begun/)
  t.equal(third.ask('a'), -1, 'the first answer')
})

t.test('the snapshot is served at once, and later the records', async (t) => {
  const { start, write, zones, snapshot } = place(t, {
    'a.yaml': manifest('a', 1),
    'b.yaml': manifest('b', 1),
    'c.yaml': manifest('c', 1),
  })
  const first = await start()
  t.equal(first.note(), '')
  t.match(first.lines.join('\n'), /snapshot .* yet/)
  await first.end()
  t.ok(existsSync(snapshot), 'written at the end, if not before')

  write('a.yaml', manifest('a', 2))
  rmSync(join(zones, 'b.yaml'))
  write('d.yaml', manifest('d', 2))
  const second = await start()
  t.strictSame(['a', 'b', 'c', 'd'].map(second.ask), [1, 1, 1, -1])
  t.equal(second.unready(), '', 'ready')
  t.match(second.note(), /^zones are as of 20\d\d-.*Z: records are being read$/)
  t.match(second.lines[0], /snapshot .* loaded in .* s: 1 zones, 4 names, as of 20/)
  const served = (by: typeof second) =>
    by.setUp.metric(`sextant_kuadrant_snapshot_served{snapshot="${snapshot}"}`)
  t.equal(await served(second), 1)
  await second.caughtUp()
  t.strictSame(['a', 'b', 'c', 'd'].map(second.ask), [2, -1, 1, 2])
  t.equal(await served(second), 0)
  write('c.yaml', manifest('c', 3))
  await until(() => second.ask('c') === 3, 'the edit')
  await second.end()

  const third = await start()
  t.strictSame(['a', 'b', 'c', 'd'].map(third.ask), [2, -1, 3, 2])
  const before = readFileSync(snapshot)
  await third.caughtUp()
  await third.end()
  t.strictSame(readFileSync(snapshot), before, 'and nothing is written where nothing changed')
})

t.test('a file that is bad at the start takes nothing away', async (t) => {
  const { start, write } = place(t, {
    'a.yaml': manifest('a', 1) + manifest('b', 1),
    'c.yaml': manifest('c', 1),
  })
  await (await start()).end()
  write('a.yaml', 'a: b: c\n')
  write('c.yaml', manifest('c', 2))
  const second = await start()
  await until(() => second.ask('c') === 2, 'the good file')
  t.strictSame([second.ask('a'), second.ask('b')], [1, 1])
  t.match(second.note(), /^2 RRsets are as of .*: .*a\.yaml:1/)
  t.equal(second.unready(), '')
  t.match(
    second.lines.join('\n'),
    /2 RRsets of the snapshot are kept until all manifests are valid/,
  )
  write('a.yaml', manifest('a', 2))
  await until(() => second.ask('b') === -1, 'the removal')
  t.equal(second.ask('a'), 2)
  t.equal(second.note(), '')
  await second.end()
  const third = await start()
  t.strictSame([third.ask('a'), third.ask('b'), third.ask('c')], [2, -1, 2])
})

t.test('a directory that does not exist: the snapshot is served', async (t) => {
  const { start, zones } = place(t, { 'a.yaml': manifest('a', 1) })
  await (await start()).end()
  renameSync(zones, `${zones}.away`)
  const second = await start()
  t.equal(second.ask('a'), 1)
  t.strictSame(second.noted(), [-1, -1], 'the records are being read')
  await until(() => /cannot be listed/.test(second.note()), 'the trouble to be noted')
  t.match(second.lines.join('\n'), /cannot be listed.*; the snapshot is served/)
  t.equal(second.ask('a'), 1)
  t.strictSame(second.noted(), [EdeCode.STALE_ANSWER, EdeCode.STALE_NXDOMAIN_ANSWER])
  await second.end()
})

t.test(
  'other options, and what is no snapshot, are refused; the start goes on without',
  async (t) => {
    const { start, snapshot } = place(t, { 'a.yaml': manifest('a', 1) })
    await (await start()).end()
    const octets = readFileSync(snapshot)
    const table: readonly [name: string, content: Buffer, properties: string, want: RegExp][] = [
      [
        'other options',
        octets,
        'rname a@example.com',
        /is not used: it was made with other options/,
      ],
      [
        'a torn file',
        octets.subarray(0, 500),
        '',
        /is not used: it is incomplete: 500 of \d+ octets/,
      ],
      [
        'another version',
        Buffer.from(octets.toString('latin1').replace(/ \d+ /, ' 9 '), 'latin1'),
        '',
        /its version is "9"/,
      ],
      ['a foreign file', Buffer.from('mine\n'), '', /is not used: it is not a snapshot/],
    ]
    for (const [name, content, properties, want] of table) {
      writeFileSync(snapshot, content)
      const { ask, note, lines, end, setUp } = await start(properties)
      t.equal(ask('a'), 1, name)
      t.equal(note(), '', name)
      t.match(lines.join('\n'), want, name)
      const refusals = lines.filter((line) => /is not used/.test(line))
      t.equal(refusals.length, 1, `${name}: one reason`)
      const { warnings } = await setUp.check()
      t.match(warnings.join('\n'), want, `${name}: checked`)
      await end()
      const isKept = readFileSync(snapshot).equals(content)
      t.equal(isKept, name === 'a foreign file', `${name} is ${isKept ? 'kept' : 'replaced'}`)
    }
  },
)

t.test('a reload does not go back to the snapshot', async (t) => {
  const { start, write } = place(t, { 'a.yaml': manifest('a', 1) })
  await (await start()).end()
  const first = await start()
  await first.caughtUp()
  write('a.yaml', manifest('a', 2))
  await until(() => first.ask('a') === 2, 'the edit')
  const reloaded = await start()
  t.equal(reloaded.ask('a'), 2)
  t.equal(reloaded.note(), '')
  await first.setUp.stop()
  write('a.yaml', manifest('a', 3))
  await until(() => reloaded.ask('a') === 3, 'the next edit')
})

t.test('an end before the records are read leaves nothing behind', async (t) => {
  const { start, snapshot } = place(t, { 'a.yaml': manifest('a', 1) })
  await (await start()).end()
  const before = readFileSync(snapshot)
  for (let i = 0; i < 3; i++) await (await start()).end()
  t.strictSame(readFileSync(snapshot), before)
})

t.test('invalid values of the property', (t) => {
  const table: readonly [string, RegExp][] = [
    ['snapshot', /Wrong argument count/],
    ['snapshot a 1m b', /Wrong argument count/],
    ['snapshot a soon', /snapshot interval is not a duration: soon/],
    ['snapshot a 10ms', /snapshot interval must be from 1s to 24h, got 10ms/],
    ['snapshot a 25h', /snapshot interval must be from 1s to 24h, got 25h/],
    ['snapshot a\n snapshot b', /snapshot appears twice/],
  ]
  for (const [property, want] of table) {
    t.match(setupError(kuadrant, `kuadrant {\n manifests m\n ${property}\n}`), want, property)
  }
  const setUp = new SetUp(kuadrant, 'kuadrant {\n manifests m\n snapshot s\n}', [ZONE])
  const second = kuadrant.setup(Object.assign(Object.create(setUp), secondBlock()))
  t.match(partsOf(second)[0]?.fault, {
    message: /snapshot .*\/s belongs to another server block/,
  })
  t.end()

  function secondBlock() {
    const other = new SetUp(kuadrant, 'kuadrant {\n manifests m\n snapshot x\n}', ['x.'])
    const { dispenser } = new SetUp(
      { name: 'kuadrant', setup: () => ({}) },
      'kuadrant {\n manifests m\n snapshot s\n}',
      ['x.'],
    )
    return { dispenser, block: other.block }
  }
})

t.test('a snapshot that cannot be written is on the ready page', async (t) => {
  const directory = t.testdir({ zones: { 'a.yaml': manifest('a', 1) } })
  // Permission bits would not hinder root: a folder is where the new file has to go.
  const snapshot = join(directory, 'snapshot')
  mkdirSync(snapshot)
  const corefile = `kuadrant {\n manifests ${join(directory, 'zones')}\n snapshot ${snapshot} 1s\n}`
  const setUp = new SetUp(kuadrant, corefile, [ZONE])
  await setUp.start()
  t.teardown(() => setUp.stop())
  const [ready] = setUp.readiness
  const note = () => setUp.problemText()
  await until(() => note() !== '', 'the write to fail')
  t.match(note(), /^the snapshot in .*\/snapshot cannot be written: /)
  t.equal(ready!.check(), '', 'queries are answered')
  rmdirSync(snapshot)
  await until(() => {
    writeFileSync(join(directory, 'zones', 'a.yaml'), manifest('a', 2))
    return note() === ''
  }, 'the snapshot to be written')
  t.ok(existsSync(snapshot))
})

t.test(
  'a name with an empty answer is kept by a snapshot, until no record closes it',
  async (t) => {
    const files = {
      'a.yaml': manifest('a', 1) + probeManifest('a', '192.0.2.1', false),
      'b.yaml': manifest('b', 1) + probeManifest('b', '192.0.2.1', false),
    }
    const { start, write, zones } = place(t, files)
    const rcodes = ({ setUp }: Awaited<ReturnType<typeof start>>) =>
      ['a', 'b', 'c'].map((name) => {
        const tx = transaction({ name: `${name}.${ZONE}`, type: RRType.A })
        setUp.handler().serve(tx)
        return tx.response.rcode
      })
    const first = await start(' all-down closed')
    t.strictSame([rcodes(first), first.ask('a')], [[0, 0, 3], -1])
    await first.end()
    rmSync(join(zones, 'b.yaml'))
    const second = await start(' all-down closed')
    t.strictSame([rcodes(second), second.ask('a')], [[0, 0, 3], -1], 'as the snapshot has it')
    const isBehind = () => second.note().startsWith('zones are as of')
    await until(() => !isBehind(), 'the records to be read')
    t.strictSame(rcodes(second), [0, 3, 3])
    write('a.yaml', manifest('a', 1))
    await until(() => second.ask('a') === 1, 'the address to be up')
    await second.end()
    const third = await start(' all-down open')
    t.equal(third.note(), '', 'a snapshot of another policy is not served')
    t.match(third.lines.join('\n'), /it was made with other options/)
  },
)
