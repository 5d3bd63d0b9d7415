import type { ServerStatus } from '../base/telemetry/status.ts'
import { describe } from '../server/supervisor.ts'
import { askAdmin, otherReply, readReply } from './admin-client.ts'
import { findAdmin } from './admin-target.ts'
import { linesOfData } from './data-format.ts'
import type { Output } from './output.ts'
import { scanStatusArgs } from './status-args.ts'
import { printStatus } from './status-text.ts'

/** `sextant status`: prints the status of a running server. Resolves to 0, or 1 with one line if that fails. */
export async function runStatus(argv: readonly string[], output: Output): Promise<number> {
  try {
    const { format, ...admin } = scanStatusArgs(argv)
    const reply = await askAdmin(findAdmin(admin), { method: 'GET', path: '/v1/status' })
    if (!isStatus(reply)) throw otherReply('a status')
    const lines = readReply('a status', () => {
      const table = (isWide: boolean) => printStatus(reply, isWide)
      return linesOfData(format, { data: () => reply, table })
    })
    for (const line of lines) output.print(line)
    return 0
  } catch (error) {
    output.printError(describe(error))
    return 1
  }
}

function isStatus(reply: unknown): reply is ServerStatus {
  if (typeof reply !== 'object' || reply === null) return false
  const lists = ['zones', 'endpoints', 'peers', 'databases', 'snapshots', 'notReady', 'notes']
  const values = reply as Readonly<Record<string, unknown>>
  return typeof values.version === 'string' && lists.every((name) => Array.isArray(values[name]))
}
