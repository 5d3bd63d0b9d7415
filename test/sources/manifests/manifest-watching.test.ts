import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { ResourceRegistry } from '../../../src/base/resource-registry.ts'
import { SILENT_LOG } from '../../../src/base/telemetry/log.ts'
import { systemTimers, type Timers } from '../../../src/base/timers.ts'
import { acquireManifests } from '../../../src/sources/manifests/acquire-manifests.ts'
import { ManifestSource } from '../../../src/sources/manifests/manifest-source.ts'
import { backdate } from '../../support/backdate.ts'
import { recordManifest } from '../../support/manifest.ts'
import { FakeClock } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { open } from './stage.ts'

/** Timers that go off when the test says so. */
class HeldTimers implements Timers {
  readonly #held = new Set<() => void>()
  /** How many callers began to wait. */
  begun = 0

  /** What is to be done every so often. */
  repeated = (): void => {}

  every(_intervalMs: number, run: () => void): () => void {
    this.repeated = run
    return () => {}
  }

  after(_delayMs: number, run: () => void): () => void {
    this.begun++
    const own = (): void => run()
    this.#held.add(own)
    return () => this.#held.delete(own)
  }

  goOff(): void {
    const held = [...this.#held]
    this.#held.clear()
    for (const run of held) run()
  }
}

/** All that needs no waiting has been done by then. */
async function turns(): Promise<void> {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve))
}

t.test('a file that is emptied for a moment loses nothing', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  const { source, address, becomes } = await open(t, directory)
  const path = join(directory, 'a.yaml')
  const lost: unknown[] = []
  source.subscribe((changes) => lost.push(...changes.filter((c) => c.after === undefined)))
  writeFileSync(path, '')
  writeFileSync(join(directory, 'b.yaml'), recordManifest('b', '192.0.2.2'))
  await becomes('b', '192.0.2.2')
  t.equal(address('a'), '192.0.2.1')
  writeFileSync(path, recordManifest('a', '192.0.2.5'))
  await becomes('a', '192.0.2.5')
  t.strictSame(lost, [])
})

t.test(
  'a ConfigMap volume is swapped at one stroke; links that lead out are not followed',
  async (t) => {
    const outside = t.testdir({
      secret: { 'x.yaml': recordManifest('x', '192.0.2.9') },
      mount: { '..1': { 'a.yaml': recordManifest('a', '192.0.2.1') } },
    })
    const directory = join(outside, 'mount')
    symlinkSync('..1', join(directory, '..data'))
    symlinkSync('..data/a.yaml', join(directory, 'a.yaml'))
    symlinkSync('../secret/x.yaml', join(directory, 'x.yaml'))
    const { address, becomes, lines } = await open(t, directory)
    t.equal(address('a'), '192.0.2.1')
    t.equal(address('x'), undefined)
    t.ok(lines.some((line) => line.includes('is outside of the directory')))
    mkdirSync(join(directory, '..2'))
    writeFileSync(join(directory, '..2', 'a.yaml'), recordManifest('a', '192.0.2.2'))
    symlinkSync('..2', join(directory, '..data_tmp'))
    renameSync(join(directory, '..data_tmp'), join(directory, '..data'))
    rmSync(join(directory, '..1'), { recursive: true })
    await becomes('a', '192.0.2.2')
  },
)

t.test('all blocks over one directory share one source, and the last one closes it', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  const options = { directory, log: SILENT_LOG, clock: systemClock, timers: systemTimers }
  backdate(directory)
  const resources = new ResourceRegistry()
  const first = await acquireManifests(options, resources)
  const second = await acquireManifests(options, resources)
  t.equal(first.item, second.item)
  const { source } = second.item
  if (!(source instanceof ManifestSource)) throw new Error('another source')
  t.equal(source.filesRead, 1)
  first.release()
  first.release()
  writeFileSync(join(directory, 'a.yaml'), recordManifest('a', '192.0.2.2'))
  const read = source.filesRead
  await until(() => source.filesRead > read, 'the source to be alive')
  second.release()
  const third = await acquireManifests(options, resources)
  t.not(third.item, first.item)
  third.release()
})

t.test('a removed directory is logged once, and so is its return', async (t) => {
  const root = t.testdir({ zones: { 'a.yaml': recordManifest('a', '192.0.2.1') } })
  const directory = join(root, 'zones')
  const lines: string[] = []
  const note = (text: string) => lines.push(text)
  const log = { debug: note, info: note, warning: note, error: note }
  let poll = (): void => {}
  const every = (_: number, run: () => void) => {
    poll = run
    return () => {}
  }
  const timers = { ...systemTimers, after: systemTimers.after, every }
  const source = new ManifestSource({ directory, log, clock: systemClock, timers })
  t.teardown(() => source.close())
  await source.load()
  await source.follow()
  const look = async () => {
    poll()
    await source.settled()
  }
  await look()
  lines.length = 0
  renameSync(directory, join(root, 'elsewhere'))
  for (let i = 0; i < 3; i++) await look()
  t.match(source.unreadyReason(), /zones: cannot be listed: ENOENT.*; all records are kept/)
  t.equal(source.recordCount, 1)
  const logged = lines.filter((line) => line.includes('cannot be listed'))
  t.equal(logged.length, 1, logged.join('\n'))
  renameSync(join(root, 'elsewhere'), directory)
  for (let i = 0; i < 2; i++) await look()
  t.equal(source.unreadyReason(), '')
  t.equal(lines.filter((line) => line === 'all manifests are valid again').length, 1)
})

t.test('a failing listener misses the change, and other listeners get it', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  const { source, lines, becomes } = await open(t, directory)
  await source.settled()
  const keys: string[] = []
  source.subscribe(() => {
    throw new Error('boom')
  })
  source.subscribe((changes) => keys.push(...changes.map((c) => c.after?.key ?? '')))
  for (const address of ['192.0.2.2', '192.0.2.3']) {
    writeFileSync(join(directory, 'a.yaml'), recordManifest('a', address))
    await becomes('a', address)
    await source.settled()
  }
  t.strictSame(keys, ['default/a', 'default/a'], 'the watch goes on')
  t.match(
    lines.filter((line) => line.includes('boom')),
    [/^Checking for changes in .* failed, the last valid state is kept: boom$/],
  )
})

t.test('a file that is replaced in one step is read at once, without a timer', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1') })
  const { source, becomes } = await open(t, directory, new HeldTimers())
  await source.settled()
  writeFileSync(join(directory, '.next'), recordManifest('a', '192.0.2.2'))
  renameSync(join(directory, '.next'), join(directory, 'a.yaml'))
  await becomes('a', '192.0.2.2')
})

t.test('a file that is not yet complete is not read', async (t) => {
  const first = recordManifest('a', '192.0.2.2')
  const second = recordManifest('b', '192.0.2.2')
  for (const { name, begin } of [
    { name: 'written in place', begin: (path: string) => writeFileSync(path, first) },
    {
      name: 'taken away and made anew',
      begin: (path: string) => {
        // Keeps its inode from being given to the new file.
        writeFileSync(`${path}.other`, '')
        renameSync(path, `${path}.old`)
        writeFileSync(path, first)
      },
    },
    {
      name: 'taken away, the inode free for others, and made anew',
      begin: (path: string) => {
        unlinkSync(path)
        writeFileSync(`${path}.other`, '')
        writeFileSync(path, first)
      },
    },
    {
      name: 'replaced in one step and written to after it',
      begin: (path: string) => {
        writeFileSync(`${path}.next`, '')
        renameSync(`${path}.next`, path)
        appendFileSync(path, first)
      },
    },
  ]) {
    await t.test(name, async (t) => {
      const directory = t.testdir({
        'a.yaml': recordManifest('a', '192.0.2.1') + recordManifest('b', '192.0.2.1'),
      })
      const timers = new HeldTimers()
      const { source, address } = await open(t, directory, timers)
      await source.settled()
      const { begun } = timers
      const path = join(directory, 'a.yaml')
      begin(path)
      await until(() => timers.begun > begun, 'the change to be noticed')
      await turns()
      t.strictSame([address('a'), address('b')], ['192.0.2.1', '192.0.2.1'])
      appendFileSync(path, second)
      await until(() => {
        timers.goOff()
        return address('b') === '192.0.2.2'
      }, 'the rest to be read')
      t.equal(address('a'), '192.0.2.2')
    })
  }
})

t.test('a file that was seen missing is not taken for complete when it is back', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1') + recordManifest('b', '192.0.2.1'),
  })
  const timers = new HeldTimers()
  const { source, address } = await open(t, directory, timers)
  await source.settled()
  const path = join(directory, 'a.yaml')
  let { begun } = timers
  renameSync(path, `${path}.old`)
  await until(() => timers.begun > begun, 'the loss to be noticed')
  await turns()
  begun = timers.begun
  timers.goOff()
  await until(() => timers.begun > begun, 'the file to be looked for')
  await source.settled()
  begun = timers.begun
  writeFileSync(path, recordManifest('a', '192.0.2.2'))
  await until(() => timers.begun > begun, 'the new file to be noticed')
  await turns()
  t.strictSame([address('a'), address('b')], ['192.0.2.1', '192.0.2.1'])
})

t.test('a renamed file of many records changes none of them, and logs nothing', async (t) => {
  const text = Array.from({ length: 10_000 }, (_, i) => recordManifest(`r${i}`, '192.0.2.1')).join(
    '',
  )
  const directory = t.testdir({ 'a.yaml': text })
  const { source, lines } = await open(t, directory)
  await source.settled()
  lines.length = 0
  const changed: unknown[] = []
  source.subscribe((changes) => changed.push(...changes))
  renameSync(join(directory, 'a.yaml'), join(directory, 'b.yaml'))
  await until(() => source.fileCount === 1 && source.filesRead === 2, 'the new name to be known')
  await source.settled()
  t.equal(source.recordCount, 10_000)
  t.strictSame(changed, [])
  t.strictSame(lines, [])
})

t.test('a file that is removed while its records are written elsewhere loses none', async (t) => {
  const [first, second] = [recordManifest('a', '192.0.2.1'), recordManifest('b', '192.0.2.1')]
  const directory = t.testdir({ 'a.yaml': first + second })
  const timers = new HeldTimers()
  const clock = new FakeClock()
  const { source } = await open(t, directory, timers, clock)
  await source.settled()
  const lost: unknown[] = []
  source.subscribe((changes) => lost.push(...changes.filter((c) => c.after === undefined)))
  const other = join(directory, 'b.yaml')
  let { begun } = timers
  unlinkSync(join(directory, 'a.yaml'))
  writeFileSync(other, first)
  await until(() => {
    timers.goOff()
    return source.fileCount === 2
  }, 'the new file to be read')
  await source.settled()
  // Longer than a deleted file is kept, in steps that are shorter.
  for (let i = 0; i < 20; i++) {
    clock.pass(15)
    begun = timers.begun
    appendFileSync(other, i === 19 ? second : '# more\n')
    await until(() => timers.begun > begun, 'the write to be noticed')
    timers.goOff()
    await source.settled()
  }
  t.equal(source.fileCount, 2, 'the deleted file is kept meanwhile')
  await until(() => {
    clock.pass(30)
    timers.goOff()
    return source.fileCount === 1
  }, 'the deletion to count')
  t.equal(source.recordCount, 2)
  t.strictSame(lost, [])
})

t.test('a deleted file counts as deleted in time, however much else is written', async (t) => {
  const directory = t.testdir({ 'a.yaml': recordManifest('a', '192.0.2.1'), 'b.yaml': '' })
  const timers = new HeldTimers()
  const clock = new FakeClock()
  const { source } = await open(t, directory, timers, clock)
  await source.settled()
  unlinkSync(join(directory, 'a.yaml'))
  let passedMs = 0
  while (source.recordCount > 0 && passedMs < 10_000) {
    const { begun } = timers
    appendFileSync(join(directory, 'b.yaml'), '# more\n')
    await until(() => timers.begun > begun, 'the write to be noticed')
    timers.goOff()
    await source.settled()
    clock.pass(30)
    passedMs += 30
  }
  t.ok(passedMs < 6000, `${passedMs} ms`)
})

t.test('the check of all files skips a file that is being written', async (t) => {
  const directory = t.testdir({
    'a.yaml': recordManifest('a', '192.0.2.1') + recordManifest('b', '192.0.2.1'),
  })
  const timers = new HeldTimers()
  const { source, address } = await open(t, directory, timers)
  await source.settled()
  const { begun } = timers
  writeFileSync(join(directory, 'a.yaml'), recordManifest('a', '192.0.2.2'))
  await until(() => timers.begun > begun, 'the change to be noticed')
  timers.repeated()
  await source.settled()
  t.strictSame([address('a'), address('b')], ['192.0.2.1', '192.0.2.1'])
})
