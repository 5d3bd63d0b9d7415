import t from 'tap'
import { AddressHealth } from '../../../src/health/address-health.ts'
import { HeldRecord, type ManifestFile } from '../../../src/sources/manifests/manifest-file.ts'
import { ManifestStore } from '../../../src/sources/manifests/manifest-store.ts'

const RUN = 256

/** A file with a document per key; `content` is what its records say. */
function fileOf(path: string, keys: readonly string[], content = 'x'): ManifestFile {
  const documents = keys.map((key, index) => {
    const record = new HeldRecord(key, content, path)
    record.document = index
    return {
      line: index + 1,
      digestA: index,
      digestB: 0,
      records: [record],
      probes: [],
      ignored: [],
    }
  })
  return { path, documents, errors: [] }
}

const keysOf = (count: number) => Array.from({ length: count }, (_, i) => `default/${i}`)

/** Puts files in, and measures: all steps, the most between two pauses, and the records that changed. */
function measure(store: ManifestStore, files: readonly [string, ManifestFile | undefined][]) {
  const start = store.steps
  let last = start
  let most = 0
  let changed = 0
  for (const [path, file] of files) {
    for (const changes of store.replace(path, file)) {
      most = Math.max(most, store.steps - last, changes.length)
      changed += changes.length
      last = store.steps
    }
  }
  return { steps: store.steps - start, most, changed }
}

const CASES: readonly {
  name: string
  /** The files there are at first, and what is done to them. */
  make: (count: number) => {
    first: [string, ManifestFile | undefined][]
    after: [string, ManifestFile | undefined][]
  }
  /** Records that change by it, of 4096. */
  changed: number
}[] = [
  {
    name: 'a file is copied, then its original goes: a rename',
    make: (n) => ({
      first: [['a', fileOf('a', keysOf(n))]],
      after: [
        ['b', fileOf('b', keysOf(n))],
        ['a', undefined],
      ],
    }),
    changed: 0,
  },
  {
    name: 'two files swap their names',
    make: (n) => ({
      first: [
        ['a', fileOf('a', keysOf(n).slice(n / 2))],
        ['b', fileOf('b', keysOf(n).slice(0, n / 2))],
      ],
      after: [
        ['a', fileOf('a', keysOf(n).slice(0, n / 2))],
        ['b', fileOf('b', keysOf(n).slice(n / 2))],
      ],
    }),
    changed: 4096,
  },
  {
    name: 'one record in every document of a file',
    make: (n) => ({
      first: [],
      after: [
        [
          'a',
          fileOf(
            'a',
            Array.from({ length: n }, () => 'default/a'),
          ),
        ],
      ],
    }),
    changed: 1,
  },
  {
    name: 'a leftover copy at the start',
    make: (n) => ({
      first: [],
      after: [
        ['a', fileOf('a', keysOf(n))],
        ['b', fileOf('b', keysOf(n))],
      ],
    }),
    changed: 4096,
  },
]

for (const { name, make, changed } of CASES) {
  t.test(`the work is that of the records, and is done bit by bit: ${name}`, async (t) => {
    const run = (count: number) => {
      const store = new ManifestStore(new AddressHealth())
      const { first, after } = make(count)
      measure(store, first)
      return { store, ...measure(store, after) }
    }
    const once = run(4096)
    const twice = run(8192)
    t.equal(once.changed, changed)
    t.ok(once.steps <= 4096 * 12, `${once.steps} steps`)
    t.ok(twice.steps <= once.steps * 2.1, `${once.steps} steps, of twice as much ${twice.steps}`)
    // One key is settled at once, however many documents have it.
    const isOneKey = once.store.recordCount === 1
    t.ok(isOneKey || once.most <= 2 * RUN, `${once.most} steps between two pauses`)
  })
}

t.test(
  'one name in a thousand files: the first by path is served, whichever are added and removed',
  async (t) => {
    const store = new ManifestStore(new AddressHealth())
    const paths = Array.from({ length: 1000 }, (_, i) => `f${String(i).padStart(4, '0')}`)
    const file = (path: string) => fileOf(path, ['default/a'], path)
    const { steps } = measure(
      store,
      paths.toReversed().map((path) => [path, file(path)]),
    )
    t.ok(steps < 1_000_000, `${steps} steps`)
    t.equal(store.find('default/a')?.packed, 'f0000')
    t.equal(store.faults.disputedCount, 1)
    measure(
      store,
      paths.slice(0, 999).map((path) => [path, undefined]),
    )
    t.equal(store.find('default/a')?.packed, 'f0999')
    t.equal(store.faults.count, 0)
  },
)

t.test('documents of one key that change places in their file: the first is served', async (t) => {
  const store = new ManifestStore(new AddressHealth())
  const path = 'a'
  const [first, second] = ['x', 'y'].map(
    (content) => fileOf(path, ['default/a'], content).documents[0]!,
  )
  const put = (...documents: (typeof first)[]) => {
    for (const [index, document] of documents.entries()) document!.records[0]!.document = index
    measure(store, [[path, { path, documents: documents.map((d) => d!), errors: [] }]])
  }
  put(first, second)
  t.equal(store.find('default/a')?.packed, 'x')
  put(second, first)
  t.equal(store.find('default/a')?.packed, 'y')
})

t.test(
  'a fault is reported once, and not at all if it is settled before it is logged',
  async (t) => {
    const store = new ManifestStore(new AddressHealth())
    measure(store, [
      ['a', fileOf('a', keysOf(100))],
      ['b', fileOf('b', keysOf(100))],
    ])
    const { texts, more } = store.faults.takeNew(20)
    t.equal(texts.length, 20)
    t.equal(more, 80)
    t.match(texts[0], /^b:1: DNSRecord default\/0 is also in a; that one is served$/)
    t.strictSame(store.faults.takeNew(20), { texts: [], more: 0 })
    measure(store, [['c', fileOf('c', keysOf(100))]])
    t.strictSame(store.faults.takeNew(20), { texts: [], more: 0 }, 'disputed already')
    measure(store, [
      ['d', fileOf('d', ['default/new'])],
      ['e', fileOf('e', ['default/new'])],
      ['d', undefined],
    ])
    t.strictSame(store.faults.takeNew(20), { texts: [], more: 0 }, 'a rename')
  },
)
