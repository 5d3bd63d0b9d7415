import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { systemClock } from '../../../src/base/clock.ts'
import { runWhole } from '../../../src/base/slices.ts'
import { scanName } from '../../../src/dns/name/name.ts'
import { VersionView } from '../../../src/xfr/journal/version-view.ts'
import { type ImageLoad, loadImage } from '../../../src/zone/zonefile/image-load.ts'
import { loadWithoutPause } from '../../../src/zone/zonefile/load-in-thread.ts'
import { printView } from '../../support/zone-version.ts'

// Long: it starts many threads.

const apex = scanName('example.org.')!
const HEAD = '@ 60 SOA ns host 7 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n'
const MANY = Array.from({ length: 300 }, (_, i) => `host${i} 60 A 192.0.2.${i % 256}\n`).join('')
/** A signed zone that has expired: its warning is also that of the signatures. */
const SIGNED =
  '@ 60 DNSKEY 257 3 13 AAAA\n' +
  '@ 60 RRSIG SOA 13 2 60 20200101000000 20190101000000 1029 example.org. AAAA\n'

const cases = [
  { name: 'a good zone', text: HEAD + MANY },
  {
    name: 'a name of another zone: a warning',
    text: `${HEAD}${MANY}www.example.com. 60 A 192.0.2.1\n`,
  },
  { name: 'signatures that will not validate: a warning', text: HEAD + SIGNED + MANY },
  {
    name: 'faults, each with its line',
    text: `${HEAD}${MANY}a 60 A 1\nb 60 CNAME c\nb 60 A 192.0.2.1\n`,
  },
  { name: 'the same serial', text: HEAD + MANY, options: { unlessSerial: 7 } },
]

/** What a load says, and the records that it made. */
function shown(load: ImageLoad): unknown {
  if (load.kind === 'unchanged') return load
  if (load.kind !== 'loaded') {
    const errors = load.kind === 'failed' ? load.errors : [load.error]
    return { ...load, errors: errors.map((error) => error.print()) }
  }
  const { image, warnings, signatures, ...rest } = load
  const version = { zone: apex, serial: load.serial, buffer: image.buffer, imageVersion: 1 }
  const records = Array.from(VersionView.open(version)!.content(), printView)
  const signature = signatures.warning?.print()
  const all = { warnings: warnings.map((warning) => warning.print()), signature }
  return { ...rest, ...all, expiry: signatures.expiry, records: records.join('\n') }
}

for (const { name, text, options } of cases) {
  t.test(`a thread loads as the caller does: ${name}`, async (t) => {
    const path = join(t.testdir({}), 'db')
    writeFileSync(path, text)
    const job = { path, apex, options: { nowSeconds: 1_700_000_000, ...options } }
    const inThread = shown(await loadWithoutPause(job, systemClock, { octetsMin: 1 }))
    t.strictSame(inThread, shown(runWhole(loadImage(job))))
  })
}

t.test('loads at the same time, and a file that is gone', async (t) => {
  const directory = t.testdir({})
  const jobs = [0, 1, 2].map((i) => ({ path: join(directory, `db${i}`), apex, options: {} }))
  for (const { path } of jobs.slice(0, 2)) writeFileSync(path, HEAD + MANY)
  const loads = await Promise.all(
    jobs.map((job) => loadWithoutPause(job, systemClock, { octetsMin: 1 })),
  )
  t.strictSame(
    loads.map((load) => load.kind),
    ['loaded', 'loaded', 'unreadable'],
  )
})

t.test(
  'a thread that cannot start: the caller loads, and the next load has a thread again',
  async (t) => {
    const path = join(t.testdir({}), 'db')
    writeFileSync(path, HEAD)
    // A function cannot be sent to a thread: `new Worker` throws, as without the right to more threads.
    const options = { nowSeconds: 0, fault: () => 0 }
    const load = await loadWithoutPause({ path, apex, options }, systemClock, { octetsMin: 1 })
    t.equal(load.kind, 'loaded')
    t.equal(
      (await loadWithoutPause({ path, apex, options: {} }, systemClock, { octetsMin: 1 })).kind,
      'loaded',
    )
  },
)

t.test(
  'small zones that are loaded one after the other, or at a time, share nothing',
  async (t) => {
    const directory = t.testdir({})
    // Each yields every few hundred entries. The last two need arenas of their own.
    const sizes = [1, 40, 300, 600, 2000, 3000]
    const load = (size: number): Generator<void, ImageLoad> => {
      const path = join(directory, `${size}`)
      const names = Array.from(
        { length: size },
        (_, i) => `n${size}-${i} 60 A 192.0.2.${i % 256}\n`,
      )
      writeFileSync(path, HEAD + names.join(''))
      return loadImage({ path, apex, options: {} })
    }
    const together = sizes.map(load)
    const found = new Map<Generator<void, ImageLoad>, ImageLoad>()
    while (found.size < together.length) {
      for (const one of together) {
        if (found.has(one)) continue
        const step = one.next()
        if (step.done === true) found.set(one, step.value)
      }
    }
    const alone = sizes.map((size) => runWhole(load(size)))
    const records = (one: ImageLoad): unknown => (shown(one) as { records: string }).records
    t.strictSame(
      together.map((one) => records(found.get(one)!)),
      alone.map(records),
    )
  },
)
