import { InputError } from '../base/errors.ts'
import { describe } from '../server/supervisor.ts'
import { escapeControls } from '../telemetry/log.ts'
import type { ServerStatus } from '../telemetry/status.ts'
import { askAdmin, otherReply, readReply } from './admin-client.ts'
import { ADMIN_FLAGS, type AdminArgs, findAdmin } from './admin-target.ts'
import { scanFlags } from './args.ts'
import { linesOfJson, type Output } from './output.ts'
import { printStatus } from './status-text.ts'

interface StatusArgs extends AdminArgs {
  readonly isJson: boolean
}

/** `sextant status`: prints the status of a running server. Resolves to 0, or 1 with one line if that fails. */
export async function runStatus(argv: readonly string[], output: Output): Promise<number> {
  try {
    const { isJson, ...admin } = scanStatusArgs(argv)
    const reply = await askAdmin(findAdmin(admin), { method: 'GET', path: '/v1/status' })
    if (!isStatus(reply)) throw otherReply('a status')
    const lines = readReply('a status', () => {
      return isJson ? linesOfJson(reply) : printStatus(reply).map(escapeControls)
    })
    for (const line of lines) output.print(line)
    return 0
  } catch (error) {
    output.printError(describe(error))
    return 1
  }
}

/** Throws InputError. */
function scanStatusArgs(argv: readonly string[]): StatusArgs {
  const servers = argv.filter((arg) => arg.startsWith('@'))
  const others = argv.filter((arg) => !arg.startsWith('@'))
  const flags = scanFlags(others, [], [...ADMIN_FLAGS, 'o'])
  if (typeof flags === 'string') throw new InputError(undefined, flags)
  const { values, rest } = flags
  if (rest.length > 0)
    throw new InputError(undefined, `extra command line arguments: [${rest.join(' ')}]`)
  if (servers.length > 1)
    throw new InputError(undefined, `more than one server: ${servers.join(' ')}`)
  const format = values.get('o') ?? 'table'
  if (format !== 'json' && format !== 'table') {
    throw new InputError(undefined, `-o must be json or table, got ${format}`)
  }
  return {
    server: servers[0]?.slice(1),
    conf: values.get('conf'),
    tokenFile: values.get('token-file'),
    ca: values.get('ca'),
    isJson: format === 'json',
  }
}

function isStatus(reply: unknown): reply is ServerStatus {
  if (typeof reply !== 'object' || reply === null) return false
  const lists = ['zones', 'endpoints', 'peers', 'databases', 'snapshots', 'notReady', 'notes']
  const values = reply as Readonly<Record<string, unknown>>
  return typeof values.version === 'string' && lists.every((name) => Array.isArray(values[name]))
}
