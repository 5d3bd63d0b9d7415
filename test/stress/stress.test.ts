import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { packRecord } from '../../src/records/pack.ts'
import type { RecordChange, StoredRecord } from '../../src/records/record-source.ts'
import { DataServer } from '../support/data-server.ts'
import { cityEntry, composeMmdb } from '../support/mmdb.ts'
import { type Board, type Report, Sign } from './client.ts'
import { endpointsOf, isAbsent, nameOf, PLACES } from './content.ts'
import { DIRECTIVES, type Stage, stages } from './directives.ts'

/** `SEXTANT_STRESS_CHANGES=100000` for the long run. */
const CHANGES = Number(process.env.SEXTANT_STRESS_CHANGES ?? 5000)
const NAMES = 400
const BATCH_MAX = 40
t.setTimeout(900_000 + CHANGES * 20)

const corefile = (mmdb: string): string => `.:0 {
  bind 127.0.0.1
  geoip ${mmdb} {
    edns-subnet
${Array.from({ length: PLACES }, (_, i) => `    net 10.0.${i}.0/24 NET-P${i}`).join('\n')}
  }
  stress
}
`

const shared = (length: number): Int32Array =>
  new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT))

/** The records as they are, and the next version of some of them. */
class Writer {
  readonly #records = new Map<number, StoredRecord>()
  readonly #random = new Random(20261121)
  readonly #board: Board
  readonly #stage: Stage
  done = 0
  publishes = 0

  constructor(board: Board, stage: Stage) {
    this.#board = board
    this.#stage = stage
  }

  /** Publishes new versions of up to BATCH_MAX names at once. */
  step(): void {
    const { begun } = this.#board
    const count = 1 + this.#random.below(BATCH_MAX)
    const names = new Set(Array.from({ length: count }, () => this.#random.below(NAMES)))
    const changes = [...names].flatMap((n) => this.#change(n, begun[n]! + 1))
    for (const n of names) Atomics.add(begun, n, 1)
    this.#stage.apply(changes)
    this.done += names.size
    this.publishes++
  }

  #change(n: number, version: number): RecordChange[] {
    const before = this.#records.get(n)
    if (isAbsent(n, version)) {
      this.#records.delete(n)
      return before === undefined ? [] : [{ before, after: undefined }]
    }
    const after = recordOf(n, version)
    this.#records.set(n, after)
    return [{ before, after }]
  }
}

function recordOf(n: number, version: number): StoredRecord {
  const packed = packRecord({
    namespace: 'stress',
    name: `n${n}`,
    zoneLabel: '',
    rootHost: scanName(nameOf(n))!,
    isAggregate: false,
    isWildcardHost: false,
    createdSeconds: 0,
    endpoints: endpointsOf(n, version),
  })
  return { key: `stress/n${n}`, packed }
}

t.test('under constant change every answer is some version of its name', async (t) => {
  const directory = t.testdir({})
  const mmdb = join(directory, 'test.mmdb')
  writeFileSync(mmdb, composeMmdb({ networks: { '192.0.2.0/24': cityEntry('GB', 'EU') } }))
  const server = new DataServer(t, {
    module: new URL('./directives.ts', import.meta.url),
    directives: DIRECTIVES,
    corefile: { kind: 'text', name: 'Corefile', text: corefile(mmdb) },
    threads: 2,
  })
  const port = await server.start()
  const stage = stages[0]!
  const board: Board = { begun: shared(NAMES), signs: shared(1) }
  const client = new Worker(new URL('./client-worker.ts', import.meta.url), {
    workerData: { port, board },
  })
  t.teardown(() => client.terminate())
  await once(client, 'message')
  const reported = once(client, 'message')
  const startedMs = performance.now()
  const writer = new Writer(board, stage)
  while (writer.done < CHANGES) {
    writer.step()
    await turn()
    // While new places wait for their classes nothing else is published: do not do without for long.
    if (writer.publishes % 4 === 0) await stage.table.settled()
  }
  await stage.table.settled()
  Atomics.store(board.signs, Sign.Done, 1)
  Atomics.notify(board.signs, Sign.Done)
  const [report] = (await reported) as [Report & { behind: number }]
  const { compactions, table } = stage
  const { classCount } = table.trie
  t.comment(
    JSON.stringify({
      ...report,
      publishes: writer.publishes,
      compactions,
      classCount,
      ms: performance.now() - startedMs,
    }),
  )
  t.strictSame(report.samples, [])
  t.equal(report.faults, 0)
  t.equal(report.behind, 0, 'every thread came to the last versions')
  t.ok(report.answered > CHANGES / 2, `${report.answered} answers`)
  t.ok(report.lost < report.answered / 100, `${report.lost} lost`)
  t.ok(compactions > 2, `${compactions} compactions`)
  t.ok(classCount > 4, `${classCount} classes`)
  t.strictSame(
    server.lines.filter((line) => /panic|data thread/i.test(line)),
    [],
  )
})
