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

const DIG_OPTIONS = ['+tries=4', '+time=15', '+nocookie', '+norec']

/** Asks 127.0.0.1 with one of the three clients; `args` are in that client's own notation. */
export async function ask(client: Client, port: number, args: readonly string[]): Promise<Reply> {
  const options = client === 'dig' ? DIG_OPTIONS : []
  const target = ['-p', String(port), '@127.0.0.1']
  const { stdout, stderr } = await run(client, [...options, ...target, ...args])
  return scanReply(stdout + stderr)
}

/**
 * Asks 127.0.0.1 each of `questions` with one dig, because its start takes longer than a question. A question is a name, a
 * type, and options of its own. Throws if one of them has no reply.
 */
export async function askEach(
  port: number,
  options: readonly string[],
  questions: readonly (readonly string[])[],
): Promise<Reply[]> {
  // Dig cuts the command line where it prints it, and the end of that line with it.
  const target = ['+nocmd', '-p', String(port), '@127.0.0.1']
  const { stdout } = await run('dig', [...target, ...DIG_OPTIONS, ...options, ...questions.flat()])
  const [, ...replies] = stdout.split(/^;; Got answer:$/m)
  if (replies.length === questions.length) return replies.map(scanReply)
  const tail = stdout.slice(-1000)
  throw new Error(`${replies.length} replies to ${questions.length} questions:\n${tail}`)
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
