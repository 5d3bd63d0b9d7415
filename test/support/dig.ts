import { run } from './peer.ts'

/** What dig, kdig or drill printed of one reply. */
export interface Reply {
  readonly status: string
  /** Lower case: `qr aa rd`. */
  readonly flags: readonly string[]
  /** Each record as `owner ttl class type rdata`, single spaces, sorted within its section. */
  readonly answer: readonly string[]
  readonly authority: readonly string[]
  readonly additional: readonly string[]
  /** Everything it printed. */
  readonly text: string
}

export type Client = 'dig' | 'kdig' | 'drill'

/** Asks 127.0.0.1 with one of the three clients; `args` are in that client's own notation. */
export async function ask(client: Client, port: number, args: readonly string[]): Promise<Reply> {
  const server = '@127.0.0.1'
  const options = client === 'dig' ? ['+tries=4', '+time=15', '+nocookie', '+norec'] : []
  const { stdout, stderr } = await run(client, [...options, '-p', String(port), server, ...args])
  return scanReply(stdout + stderr)
}

/** Reads the layout that the three clients share: a header line, then sections. */
function scanReply(text: string): Reply {
  const status = /(?:status|rcode): (\w+)/.exec(text)?.[1] ?? 'NONE'
  const flags = /;; [Ff]lags: ([a-z ]*)/.exec(text)?.[1]?.trim().split(/\s+/) ?? []
  return {
    status,
    flags,
    answer: section(text, 'ANSWER'),
    authority: section(text, 'AUTHORITY'),
    additional: section(text, 'ADDITIONAL'),
    text,
  }
}

function section(text: string, name: string): string[] {
  const lines = text.split('\n')
  const start = lines.findIndex((line) => line.startsWith(`;; ${name} SECTION:`))
  if (start === -1) return []
  const rest = lines.slice(start + 1)
  const end = rest.findIndex((line) => line.startsWith(';;'))
  return rest
    .slice(0, end === -1 ? rest.length : end)
    .filter((line) => line.trim() !== '' && !line.startsWith(';'))
    .map((line) => line.trim().replace(/\s+/g, ' '))
    .sort()
}
