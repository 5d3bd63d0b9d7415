import { createInterface } from 'node:readline/promises'
import { escapeControls } from '../base/telemetry/log.ts'
import type { ListedName } from '../egress/agent/api/names-api.ts'
import { printData } from './data-format.ts'
import { type FqdnArgs, scanFqdnArgs } from './fqdn-args.ts'
import {
  askNode,
  type NodeReply,
  type NodeRequest,
  REPLY_MS_MAX,
  readNames,
  readSelectors,
  refusalOf,
} from './node-api-client.ts'
import type { Output } from './output.ts'
import { tableOf } from './table.ts'
import type { Line } from './tones.ts'

/**
 * `sextant fqdn …`: lists and removes what clients of the node agent learned. Resolves to the exit code. `timeoutMs`:
 * for the reply of the agent.
 */
export async function runFqdn(
  argv: readonly string[],
  output: Output,
  timeoutMs = REPLY_MS_MAX,
): Promise<number> {
  const args = scanFqdnArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  const ask: Ask = (method, path) => askNode({ socket: args.socket, method, path, timeoutMs })
  try {
    if (args.action === 'names') await printNames(args, ask, output)
    else if (args.action === 'list') await printList(args, ask, output)
    else await clean(args, ask, output)
    return 0
  } catch (error) {
    output.printError(error instanceof Error ? error.message : String(error))
    return 1
  }
}

type Ask = (method: NodeRequest['method'], path: string) => Promise<NodeReply>

async function printList(args: FqdnArgs, ask: Ask, output: Output): Promise<void> {
  const id = args.endpoint === '' ? '' : `/${encodeURIComponent(args.endpoint)}`
  const filters = { matchpattern: args.pattern, source: args.source }
  const reply = await ask('GET', `/fqdn/cache${id}${queryOf(filters)}`)
  // Nothing that matches is a result, not a fault.
  const names = reply.status === 404 ? [] : readNames(accepted(reply))
  const table = (isWide: boolean): Line[] => listNames(names, isWide)
  printData(output, args.format, { data: () => names, table })
}

async function printNames(args: FqdnArgs, ask: Ask, output: Output): Promise<void> {
  const names = readSelectors(accepted(await ask('GET', '/fqdn/names')))
  const table = (): Line[] => {
    const rows = names.FQDNPolicySelectors.map(({ selectorString, regexString }) => {
      return [selectorString, regexString]
    })
    return tableOf(['Selector', 'Regex'], rows, GAP)
  }
  printData(output, args.format, { data: () => names, table })
}

async function clean(args: FqdnArgs, ask: Ask, output: Output): Promise<void> {
  if (!args.isForced && !(await isConfirmed(args.pattern))) return
  accepted(await ask('DELETE', `/fqdn/cache${queryOf({ matchpattern: args.pattern })}`))
  output.print('FQDN proxy cache cleared')
}

/** Throws an Error with the reason of the agent if the reply is not a result. */
function accepted(reply: NodeReply): NodeReply {
  if (reply.status === 200) return reply
  throw new Error(refusalOf(reply))
}

async function isConfirmed(pattern: string): Promise<boolean> {
  const what = pattern === '' ? 'All names' : `Names that match ${escapeControls(pattern)}`
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const question = `${what} are removed, and what they allow. Proceed? (y/N) `
  // Without an answer, the end of the input is a no.
  const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')))
  const answer = await Promise.race([lines.question(question), ended])
  lines.close()
  return /^y(es)?$/i.test(answer.trim())
}

/** Spaces between columns, as Cilium prints them. */
const GAP = 3

function listNames(names: readonly ListedName[], isWide: boolean): Line[] {
  const learned = isWide ? ['LookupTime'] : []
  const headings = ['Endpoint', 'Source', 'FQDN', 'TTL', ...learned, 'ExpirationTime', 'IPs']
  const rows = names.map((name) => {
    const { 'endpoint-id': client, source, fqdn, ttl, 'lookup-time': found, ips } = name
    return [
      ...[client, source, fqdn, ttl, ...(isWide ? [found] : [])],
      ...[name['expiration-time'], ips.join(',')],
    ]
  })
  return tableOf(headings, rows, GAP)
}

function queryOf(params: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== ''))
  return query.size === 0 ? '' : `?${query}`
}
