import type { ServerStatus } from '../base/telemetry/status.ts'
import { describe } from '../server/supervisor.ts'
import { askAdmin, otherReply, readReply } from './admin-client.ts'
import { type AdminTarget, findAdmin } from './admin-target.ts'
import { linesOfData, type Printable } from './data-format.ts'
import type { Output } from './output.ts'
import { scanStatusArgs } from './status-args.ts'
import { printPeers, printStatus } from './status-text.ts'
import { untilInterrupted, WATCH_MS, watchData } from './watch.ts'

/** How `--watch` repeats. */
interface Repetition {
  readonly intervalMs: number
  readonly stop?: AbortSignal
}

const REPETITION: Repetition = { intervalMs: WATCH_MS }

/** `sextant status`: prints the status of a running server. Resolves to 0, or 1 with one line if that fails. */
export function runStatus(
  argv: readonly string[],
  output: Output,
  repetition = REPETITION,
): Promise<number> {
  const print = (status: ServerStatus): Printable => ({
    data: () => status,
    table: (isWide) => printStatus(status, isWide),
  })
  return report(argv, output, print, repetition)
}

/** `sextant peers`: as `runStatus`, for the peers of the server. */
export function runPeers(argv: readonly string[], output: Output): Promise<number> {
  const print = (status: ServerStatus): Printable => ({
    data: () => ({ peers: status.peers, quorums: status.quorums ?? [] }),
    table: (isWide) => printPeers(status, isWide),
  })
  return report(argv, output, print, REPETITION)
}

async function report(
  argv: readonly string[],
  output: Output,
  print: (status: ServerStatus) => Printable,
  { intervalMs, stop }: Repetition,
): Promise<number> {
  try {
    const { format, watches, ...admin } = scanStatusArgs(argv)
    const target = findAdmin(admin)
    const read = async (): Promise<Printable> => print(await readStatus(target))
    if (watches) {
      await watchData({ read, format, intervalMs, stop: stop ?? untilInterrupted() }, output)
    } else {
      const printable = await read()
      for (const line of readReply(STATUS, () => linesOfData(format, printable))) output.print(line)
    }
    return 0
  } catch (error) {
    output.printError(describe(error))
    return 1
  }
}

const STATUS = 'a status'

async function readStatus(target: AdminTarget): Promise<ServerStatus> {
  const status = await askAdmin(target, { method: 'GET', path: '/v1/status' })
  if (!isStatus(status)) throw otherReply(STATUS)
  return status
}

function isStatus(reply: unknown): reply is ServerStatus {
  if (typeof reply !== 'object' || reply === null) return false
  const lists = ['zones', 'endpoints', 'peers', 'databases', 'snapshots', 'notReady', 'notes']
  const values = reply as Readonly<Record<string, unknown>>
  return typeof values.version === 'string' && lists.every((name) => Array.isArray(values[name]))
}
