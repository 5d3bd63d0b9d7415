import { once } from 'node:events'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import t from 'tap'
import { createRing, RingReader, RingWriter } from '../../src/base/ring.ts'
import { runs } from '../support/runs.ts'

const RUNS = { seed: 20261121, numRuns: runs(200) }

/** Writes a record of `octets` octets, all of them `fill`; false: it was dropped. */
function write(writer: RingWriter, tag: number, octets: number, fill: number): boolean {
  const at = writer.begin(octets)
  if (at === -1) return false
  writer.octets.fill(fill, at, at + octets)
  writer.end(tag, octets)
  return true
}

/** What is in the ring: `tag octets fill`, or where a record is not of one piece. */
function drained(reader: RingReader): string[] {
  const records: string[] = []
  const found = reader.drain((tag, octets) => {
    const fill = octets[0] ?? 0
    const isWhole = octets.every((octet) => octet === fill)
    records.push(isWhole ? `${tag} ${octets.length} ${fill}` : `torn ${tag}`)
  })
  if (found !== records.length > 0) records.push(`found: ${found}`)
  return records
}

t.test('a ring is a bounded queue', async (t) => {
  const step = fc.oneof(
    fc.record({ tag: fc.nat(0xfffffffe), octets: fc.nat(300), fill: fc.nat(255) }),
    fc.constant('drain' as const),
  )
  // Counters start anywhere, as after so many octets: they go round at 2^32.
  const start = fc.oneof(
    fc.constant(0),
    fc.integer({ min: -40, max: 40 }).map((n) => n * 8),
  )
  const wraps = fc.constantFrom(0, 0x7fffff00, -0x80000000)
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), start, wraps, (steps, offset, around) => {
      const memory = createRing(1024)
      const header = new Int32Array(memory, 0, 2)
      header.fill((around + offset) | 0)
      const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
      let queue: string[] = []
      let dropped = 0
      for (const one of steps) {
        if (one === 'drain') {
          t.strictSame(drained(reader), queue)
          queue = []
          continue
        }
        const fill = one.octets === 0 ? 0 : one.fill
        if (write(writer, one.tag, one.octets, fill)) queue.push(`${one.tag} ${one.octets} ${fill}`)
        else dropped++
      }
      t.strictSame(drained(reader), queue)
      t.equal(reader.takeDropped(), dropped)
      t.equal(reader.takeDropped(), 0)
    }),
    RUNS,
  )
})

t.test('records that fit are accepted, others are dropped, and reading makes room', async (t) => {
  const memory = createRing(256)
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
  t.ok(write(writer, 1, 248, 1), 'all of it')
  t.notOk(write(writer, 2, 0, 0))
  t.strictSame(drained(reader), ['1 248 1'])
  t.notOk(write(writer, 3, 249, 3), 'more than there ever is')
  t.ok(write(writer, 4, 100, 4))
  t.ok(write(writer, 5, 100, 5))
  t.notOk(write(writer, 6, 100, 6))
  t.strictSame(drained(reader), ['4 100 4', '5 100 5'])
  t.ok(write(writer, 7, 100, 7), 'over the end of the memory')
  t.strictSame(drained(reader), ['7 100 7'])
  t.equal(reader.takeDropped(), 3)
})

t.test('a record may come out shorter than it was begun', async (t) => {
  const memory = createRing(128)
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
  for (let i = 0; i < 20; i++) {
    const at = writer.begin(40)
    writer.octets.fill(i, at, at + 40)
    writer.end(i, 3)
    t.strictSame(drained(reader), [`${i} 3 ${i}`])
  }
})

t.test('wherever an empty ring is, half of it has room', async (t) => {
  for (let start = 0; start < 256; start += 8) {
    const memory = createRing(256)
    new Int32Array(memory, 0, 2).fill(start)
    const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
    t.ok(write(writer, 1, 120, 1), `at ${start}`)
    t.strictSame(drained(reader), ['1 120 1'])
  }
})

t.test('the bell is rung once until it is heard', async (t) => {
  const memory = createRing(1024)
  const [writer, reader] = [new RingWriter(memory), new RingReader(memory)]
  const ring = (): boolean => {
    writer.begin(8)
    return writer.end(1, 8)
  }
  t.strictSame([ring(), ring()], [true, false])
  drained(reader)
  t.equal(ring(), false, 'drained, but not heard')
  reader.waitForWake()
  t.strictSame([ring(), ring()], [true, false])
})

/*
 * How the control thread hears of what is there: it looks when a bell is rung and at no other time, or it looks again and
 * again without hearing the bell, for as long as there is something each time.
 */
const WAYS: readonly { name: string; looksAgain: boolean }[] = [
  { name: 'between two threads nothing is torn, and no bell is missed', looksAgain: false },
  { name: 'nor where the reader hears no bell while it finds something', looksAgain: true },
]

for (const { name, looksAgain } of WAYS) {
  t.test(name, async (t) => {
    const memory = createRing(4096)
    const reader = new RingReader(memory)
    const count = 100_000
    const worker = new Worker(new URL('./ring-writer-worker.ts', import.meta.url), {
      workerData: { memory, count },
    })
    t.teardown(() => worker.terminate())
    let [read, last, torn, backwards, bells] = [0, 0, 0, 0, 0]
    let isLooking = false
    const visit = (tag: number, octets: Buffer): void => {
      read++
      if (tag <= last) backwards++
      last = tag
      const isWhole = octets.length === tag % 200 && octets.every((octet) => octet === (tag & 0xff))
      if (!isWhole) torn++
    }
    const look = (): void => {
      isLooking = looksAgain && reader.drain(visit)
      if (isLooking) {
        setImmediate(look)
        return
      }
      reader.waitForWake()
      reader.drain(visit)
    }
    worker.on('message', (message: { kind: 'wakeup' } | { kind: 'done' }) => {
      if (message.kind !== 'wakeup') return
      bells++
      if (!isLooking) look()
    })
    const [code] = await once(worker, 'exit')
    // It ends: nothing more is written.
    while (isLooking) await turn()
    const dropped = reader.takeDropped()
    t.equal(code, 0)
    t.same({ torn, backwards, all: read + dropped }, { torn: 0, backwards: 0, all: count })
    t.ok(read > 0 && bells > 0, `${read} read, ${dropped} dropped, ${bells} bells`)
  })
}
