import t from 'tap'
import { SeenFiles } from '../../../src/sources/manifests/seen-files.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'

const PATH = '/missing/app.yaml'

t.test('when a missing or emptied file counts as gone', async (t) => {
  const table: readonly {
    name: string
    kind: 'isGone' | 'isEmpty'
    /** When other files are written, in milliseconds. */
    writes?: (ms: number) => boolean
    wantMs: number
  }[] = [
    { name: 'missing', kind: 'isGone', wantMs: 50 },
    { name: 'emptied', kind: 'isEmpty', wantMs: 500 },
    {
      name: 'missing, another one is written',
      kind: 'isGone',
      writes: (ms) => ms <= 30,
      wantMs: 80,
    },
    {
      name: 'emptied, others are written',
      kind: 'isEmpty',
      writes: (ms) => ms <= 600,
      wantMs: 1100,
    },
    { name: 'others are written all the time', kind: 'isGone', writes: () => true, wantMs: 5000 },
  ]
  for (const { name, kind, writes = () => false, wantMs } of table) {
    const [clock, timers] = [new FakeClock(), new FakeTimers()]
    const startMs = clock.monotonic()
    let writtenMs = Number.NEGATIVE_INFINITY
    let goneMs = -1
    const check = (paths: readonly string[]): void => {
      t.strictSame(paths, [PATH], name)
      if (seen[kind](PATH)) goneMs = clock.monotonic() - startMs
    }
    const recheck = check
    const seen: SeenFiles = new SeenFiles({ clock, timers, writtenMs: () => writtenMs, recheck })
    t.ok(seen.isSteady)
    check([PATH])
    t.notOk(seen.isSteady, name)
    for (let ms = 10; goneMs < 0 && ms < 10_000; ms += 10) {
      clock.pass(10)
      if (writes(ms)) writtenMs = clock.monotonic()
      await timers.advance(10)
    }
    // It is looked at again after each grace period.
    const graceMs = kind === 'isGone' ? 50 : 500
    t.equal(goneMs, Math.ceil(wantMs / graceMs) * graceMs, name)
    seen.forget(PATH)
    t.ok(seen.isSteady)
  }
})

t.test('a file is known as it was read last, and forgotten with its grace period', (t) => {
  const parts = { clock: new FakeClock(), timers: new FakeTimers() }
  const seen = new SeenFiles({ ...parts, writtenMs: () => 0, recheck: () => {} })
  const file = { path: PATH, stamp: 'one', octets: 1, inode: 7 }
  t.notOk(seen.isKnown(file))
  seen.noteRead(file)
  t.ok(seen.isKnown(file))
  t.notOk(seen.isKnown({ ...file, stamp: 'two' }))
  t.notOk(seen.isReplaced(PATH), 'there is no file')
  seen.isGone(PATH)
  seen.trust(PATH)
  t.ok(seen.isSteady && seen.isKnown(file))
  seen.forget(PATH)
  t.notOk(seen.isKnown(file))
  t.end()
})
