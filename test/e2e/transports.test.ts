import t, { type Test } from 'tap'
import { QUERY_OCTETS_MAX } from '../../src/transport/udp/udp.ts'
import { freePort, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import {
  type Ask,
  countsOf,
  endServer,
  logOf,
  pageOf,
  type Replies,
  SpreadClient,
} from '../support/transcript.ts'
import { until } from '../support/until.ts'
import { wireQuery } from '../support/wire.ts'
import { CASES } from './transports-cases.ts'
import type { Case } from './transports-stage.ts'

// Long: it asks every transport on every kind of socket.

/*
 * Data threads and node:dgram serve the same Corefile one after the other, on the same port, for the
 * same clients: what they reply, log and count must be the same. By design only these differ:
 *
 *     server cookies       made with a key of the process and the time: masked
 *     `[INFO] udp: …`      says which of the two it is
 *     `[INFO] memory: …`   has what the process holds at the time
 *     dropped, "buffer"    what the kernel had no room for, and
 *     dropped, "late"      what waited too long: node:dgram can't know
 */

interface Transcript {
  readonly replies: readonly Replies[]
  readonly log: readonly string[]
  readonly metrics: readonly string[]
  readonly pages: readonly string[]
}

/** Most that the shares of two runs may differ by: what chance alone does to an even draw less than once in 10^11 times. */
const shareTolerance = (draws: number): number => 7 * Math.sqrt(0.5 / draws)

async function record(
  t: Test,
  asker: SpreadClient,
  one: Case,
  run: { udp: string; port: number; http: number; asks: readonly Ask[]; directory: string },
  wanted?: Transcript,
): Promise<Transcript> {
  const { asks, http } = run
  const corefile = one.corefile.replaceAll('{HTTP}', String(http))
  const server = await startServer(t, {
    corefile,
    files: one.files ?? {},
    env: { SEXTANT_UDP: run.udp },
    beside: run,
  })
  const replies = await asker.askAll(asks, server.port)
  const pages: string[] = []
  for (const path of one.pages ?? []) pages.push(await pageOf(http, path))
  let metrics: string[] = []
  const readMetrics = async (): Promise<void> => {
    metrics = one.metrics ? countsOf(await pageOf(http, '/metrics')) : []
  }
  await readMetrics()
  const isSame = async (): Promise<boolean> => {
    await readMetrics()
    return JSON.stringify(metrics) === JSON.stringify(wanted?.metrics)
  }
  if (wanted !== undefined) await until(isSame, 'equal metrics').catch(() => {})
  await endServer(server)
  t.match(server.output(), `udp: ${run.udp} `)
  return { replies, log: logOf(server), metrics, pages }
}

/** Equal where nothing is drawn; else the same replies, in about the same shares. */
function compareReplies(t: Test, { what, draws = 1 }: Ask, got: Replies, want: Replies): void {
  t.strictSame([...got.keys()].sort(), [...want.keys()].sort(), what)
  for (const [reply, count] of want) {
    const share = (got.get(reply) ?? 0) / draws
    const difference = Math.abs(share - count / draws)
    if (difference > shareTolerance(draws))
      t.fail(`${what}: share ${share} instead of ${count / draws}`)
  }
}

for (const one of CASES) {
  t.test(one.name, async (t) => {
    const asker = await SpreadClient.open(t)
    const damaged = one.damaged === undefined ? [] : damagedQueries(one.damaged, 400)
    const asks = [...one.asks, ...damaged]
    const place = {
      port: await freePort(),
      http: await freePort(),
      directory: temporaryDirectory(t),
    }
    const dgram = await record(t, asker, one, { ...place, udp: 'dgram', asks })
    const batch = await record(t, asker, one, { ...place, udp: 'batch', asks }, dgram)
    for (const [i, ask] of asks.entries()) {
      compareReplies(t, ask, batch.replies[i]!, dgram.replies[i]!)
      if (ask.packet.length > QUERY_OCTETS_MAX) t.notOk(batch.replies[i]!.has(''), ask.what)
    }
    t.strictSame(batch.log, dgram.log, 'log')
    t.strictSame(batch.metrics, dgram.metrics, 'metrics')
    t.strictSame(batch.pages, dgram.pages, 'pages')
    // What a case is about must be there to be compared.
    for (const [pattern, where] of one.shows ?? []) {
      const text = where === 'log' ? batch.log.join('\n') : batch.metrics.join('\n')
      t.match(text, pattern, `${where} shows it`)
    }
    const answered = batch.replies.filter((replies) => !replies.has('')).length
    t.ok(answered > 0, `${answered} of ${asks.length} answered`)
  })
}

/** Deterministic octets, so that a failure can be seen again. */
function* pseudoRandom(seed: number): Generator<number, never> {
  let state = seed
  for (;;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    yield state >>> 16
  }
}

/** Packets that are no good queries, each damaged at a place or two, or random altogether. */
function damagedQueries(names: readonly string[], count: number): Ask[] {
  const numbers = pseudoRandom(20_250_101)
  const next = (below: number): number => numbers.next().value % below
  return Array.from({ length: count }, (_, i) => {
    const name = names[next(names.length)]!
    const packet = Buffer.from(
      wireQuery({
        name,
        id: i & 0x7fff,
        type: [1, 28, 16, 255, 2][next(5)]!,
        edns: { options: [[8, Buffer.from([0, 1, 24, 0, 81, 2, 69])]] },
      }),
    )
    if (i % 4 === 0) for (let at = 2; at < packet.length; at++) packet[at] = next(256)
    else for (let n = 0; n < 1 + next(3); n++) packet[2 + next(packet.length - 2)] = next(256)
    const octets = i % 5 === 0 ? next(packet.length) : packet.length
    return { what: `damaged ${i}`, packet: packet.subarray(0, octets) }
  })
}
