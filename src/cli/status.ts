import type { ServerStatus } from '../base/telemetry/status.ts'
import { describe } from '../server/supervisor.ts'
import { askAdmin, otherReply, readReply } from './admin-client.ts'
import { type AdminTarget, findAdmin } from './admin-target.ts'
import { linesOfData, type Printable } from './data-format.ts'
import type { Output } from './output.ts'
import { scanStatusArgs } from './status-args.ts'
import { printStatus } from './status-text.ts'
import { untilInterrupted, WATCH_MS, watchData } from './watch.ts'

/**
 * `sextant status`: prints the status of a running server. Resolves to 0, or 1 with one line if that fails. `watch`:
 * how `--watch` does it.
 */
export async function runStatus(
  argv: readonly string[],
  output: Output,
  watch: { readonly intervalMs: number; readonly stop?: AbortSignal } = { intervalMs: WATCH_MS },
): Promise<number> {
  try {
    const { format, watches, ...admin } = scanStatusArgs(argv)
    const target = findAdmin(admin)
    if (watches) {
      const { intervalMs, stop = untilInterrupted() } = watch
      await watchData({ read: () => readStatus(target), format, intervalMs, stop }, output)
    } else {
      const status = await readStatus(target)
      for (const line of readReply(STATUS, () => linesOfData(format, status))) output.print(line)
    }
    return 0
  } catch (error) {
    output.printError(describe(error))
    return 1
  }
}

const STATUS = 'a status'

async function readStatus(target: AdminTarget): Promise<Printable> {
  const status = await askAdmin(target, { method: 'GET', path: '/v1/status' })
  if (!isStatus(status)) throw otherReply(STATUS)
  const table = (isWide: boolean) => readReply(STATUS, () => printStatus(status, isWide))
  return { data: () => status, table }
}

function isStatus(reply: unknown): reply is ServerStatus {
  if (typeof reply !== 'object' || reply === null) return false
  const lists = ['zones', 'endpoints', 'peers', 'databases', 'snapshots', 'notReady', 'notes']
  const values = reply as Readonly<Record<string, unknown>>
  return typeof values.version === 'string' && lists.every((name) => Array.isArray(values[name]))
}
