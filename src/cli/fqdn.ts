import { request } from 'node:http'
import { createInterface } from 'node:readline/promises'
import type { ListedName, PolicyNames } from '../node/api/names-api.ts'
import { escapeControls } from '../telemetry/log.ts'
import { type FqdnArgs, scanFqdnArgs } from './fqdn-args.ts'
import type { Output } from './output.ts'

const REPLY_MS_MAX = 30_000
const REPLY_OCTETS_MAX = 1024 * 1024 * 1024

interface Reply {
  readonly status: number
  readonly body: string
}

/** `sextant fqdn …`: lists and removes what clients of the node agent learned. Resolves to the exit code. */
export async function runFqdn(argv: readonly string[], output: Output): Promise<number> {
  const args = scanFqdnArgs(argv)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  try {
    if (args.action === 'names') return await printNames(args, output)
    if (args.action === 'list') return await printList(args, output)
    return await clean(args, output)
  } catch (error) {
    output.printError(faultOf(error, args.socket))
    return 1
  }
}

async function printList(args: FqdnArgs, output: Output): Promise<number> {
  const id = args.endpoint === '' ? '' : `/${encodeURIComponent(args.endpoint)}`
  const filters = { matchpattern: args.pattern, source: args.source }
  const reply = await ask(args.socket, 'GET', `/fqdn/cache${id}${queryOf(filters)}`)
  // Nothing that matches is a result, not a fault.
  if (reply.status !== 200 && reply.status !== 404) return refuse(reply, output)
  const names: readonly ListedName[] = reply.status === 404 ? [] : JSON.parse(reply.body)
  if (args.isJson) output.print(escapeControls(JSON.stringify(names)))
  else for (const line of tableOf(names)) output.print(escapeControls(line))
  return 0
}

async function printNames(args: FqdnArgs, output: Output): Promise<number> {
  const reply = await ask(args.socket, 'GET', '/fqdn/names')
  if (reply.status !== 200) return refuse(reply, output)
  const names: PolicyNames = JSON.parse(reply.body)
  const lines = JSON.stringify(names, undefined, 2).split('\n')
  for (const line of lines) output.print(escapeControls(line))
  return 0
}

async function clean(args: FqdnArgs, output: Output): Promise<number> {
  if (!args.isForced && !(await isConfirmed(args.pattern))) return 0
  const query = queryOf({ matchpattern: args.pattern })
  const reply = await ask(args.socket, 'DELETE', `/fqdn/cache${query}`)
  if (reply.status !== 200) return refuse(reply, output)
  output.print('FQDN proxy cache cleared')
  return 0
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

function refuse({ status, body }: Reply, { printError }: Output): number {
  printError(body.trim() === '' ? `the node agent replied with status ${status}` : body.trim())
  return 1
}

const COLUMNS = ['Endpoint', 'Source', 'FQDN', 'TTL', 'ExpirationTime', 'IPs'] as const
const GAP = '   '

function tableOf(names: readonly ListedName[]): readonly string[] {
  const rows = names.map((name) => [
    name['endpoint-id'],
    name.source,
    name.fqdn,
    String(name.ttl),
    name['expiration-time'],
    name.ips.join(','),
  ])
  const widths = COLUMNS.map((title, i) => {
    return rows.reduce((width, row) => Math.max(width, row[i]!.length), title.length)
  })
  return [COLUMNS, ...rows].map((row) => {
    return row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join(GAP)
      .trimEnd()
  })
}

function queryOf(params: Readonly<Record<string, string>>): string {
  const query = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== ''))
  return query.size === 0 ? '' : `?${query}`
}

function ask(socketPath: string, method: string, path: string): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(REPLY_MS_MAX)
    const sent = request({ socketPath, method, path, agent: false, signal }, (response) => {
      const pieces: Buffer[] = []
      let octets = 0
      response.on('data', (piece: Buffer) => {
        octets += piece.length
        if (octets > REPLY_OCTETS_MAX) sent.destroy(new Error('the reply is too long'))
        pieces.push(piece)
      })
      response.on('error', reject)
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() })
      })
    })
    sent.on('error', reject)
    sent.end()
  })
}

function faultOf(error: unknown, socket: string): string {
  const code = error instanceof Error && 'code' in error ? error.code : ''
  const isOff = code === 'ENOENT' || code === 'ECONNREFUSED'
  if (isOff) return `no node agent listens on ${socket}; start \`sextant node\`, or use --socket`
  if (code === 'EACCES')
    return `no permission for ${socket}; run this as the user of the node agent`
  return `${socket}: ${error instanceof Error ? error.message : error}`
}
