import type { Clock } from '../../base/clock.ts'
import { scanJsonText } from '../../base/json-text.ts'
import type { StateKind } from '../../base/persist/state-file.ts'
import { runWhole } from '../../base/slices.ts'
import { TTL_SECONDS_MAX } from '../../client/resolver/observation.ts'
import { nameKey, printKey, scanName } from '../../dns/name/name.ts'
import { printAddress, scanAddress } from '../../dns/text/address.ts'
import type { DatedAnswer, Learned } from '../learned/learned-table.ts'
import type { Zombie } from '../learned/zombies.ts'
import type { ClientRules } from '../rules/rule.ts'
import type { Client } from './client.ts'
import { printRules, scanRules } from './rules-text.ts'

const SPAN_MS_MAX = TTL_SECONDS_MAX * 1000
/** Longer pauses count as this: all has ended. */
const PAUSE_MS_MAX = 10 * SPAN_MS_MAX

/** What is known of one client. */
export interface ClientState {
  readonly client: Client
  readonly learned: Iterable<Learned>
}

/**
 * A file with the clients of this node, their rules, and what they learned. Each line is an array of
 * JSON:
 *
 *     ["written", TIME_MS]
 *     ["rules", RULES]
 *     ["client", ID, ADDRESSES, PLACE_OF_RULES]
 *     ["answer", NAME, LOOKUP, TTL_SECONDS, END, ADDRESSES]
 *     ["zombie", ADDRESS, NAMES, ALIVE, END, KEPT]
 *
 * Answers and zombies follow their client. TIME_MS is the wall clock at the write, in milliseconds since the
 * epoch; all other times are milliseconds after it, negative for those before it. So a wall clock that is
 * set back makes nothing last longer than its TTL, counted from the restart.
 */
export function agentState(clock: Clock): StateKind<readonly ClientState[]> {
  return {
    what: 'egress',
    version: '1',
    octetsMax: 512 * 1024 * 1024,
    mode: 0o600,
    gapMs: 1000,
    isLarge: true,
    contents: 'addresses that clients learned',
    loss: 'clients are allowed what the kernel still has, and what they look up again',
    scan: (lines) => runWhole(scanState(lines, clock)),
    scanInSlices: (lines) => scanState(lines, clock),
  }
}

/** Prints the lines of such a file. */
export function* printState(states: Iterable<ClientState>, clock: Clock): Generator<string> {
  const nowMs = clock.monotonic()
  const after = (ms: number): number | null => (Number.isFinite(ms) ? Math.round(ms - nowMs) : null)
  const print = (...values: readonly unknown[]): string => `${JSON.stringify(values)}\n`
  yield print('written', Math.round(clock.now()))
  const places = new Map<string, number>()
  const texts = new Map<ClientRules, string>()
  for (const { client, learned } of states) {
    const { id, addresses, rules } = client
    const text = texts.get(rules) ?? printRules(rules)
    texts.set(rules, text)
    const place = places.get(text) ?? places.size
    if (!places.has(text)) {
      places.set(text, place)
      yield print('rules', text)
    }
    yield print('client', id, addresses, place)
    for (const one of learned) {
      if ('address' in one) {
        const { address, names, aliveMs, endMs, keptMs } = one
        const texts = [...names].map(printKey).sort()
        yield print('zombie', address, texts, after(aliveMs), after(endMs), after(keptMs))
      } else {
        const { name, lookupMs, ttlSeconds, endMs, addresses: own } = one
        yield print('answer', printKey(name), after(lookupMs), ttlSeconds, after(endMs), own)
      }
    }
  }
}

interface Draft {
  readonly client: Client
  readonly learned: Learned[]
}

/** Returns undefined if a line has another format. */
function* scanState(
  lines: readonly string[],
  clock: Clock,
): Generator<void, readonly ClientState[] | undefined> {
  const rules: ClientRules[] = []
  const drafts: Draft[] = []
  let writtenMs: number | undefined
  for (const line of lines) {
    const values = scanArray(line)
    const kind = values?.shift()
    const draft = drafts.at(-1)
    if (values === undefined) return undefined
    if (kind === 'written' && writtenMs === undefined) {
      const time = numberOf(values[0])
      if (time === undefined) return undefined
      const pauseMs = Math.min(Math.max(0, clock.now() - time), PAUSE_MS_MAX)
      writtenMs = clock.monotonic() - pauseMs
    } else if (writtenMs === undefined) return undefined
    else if (!scanEntry({ kind, values, rules, drafts, draft, writtenMs })) return undefined
    yield
  }
  return drafts
}

interface Line {
  readonly kind: unknown
  readonly values: readonly unknown[]
  readonly rules: ClientRules[]
  readonly drafts: Draft[]
  /** The last client. */
  readonly draft: Draft | undefined
  readonly writtenMs: number
}

/** Returns false if the line has another format. */
function scanEntry({ kind, values, rules, drafts, draft, writtenMs }: Line): boolean {
  if (kind === 'rules') {
    const found = typeof values[0] === 'string' ? scanRules(values[0]) : undefined
    return found !== undefined && rules.push(found) > 0
  }
  if (kind === 'client') {
    const client = scanClient(values, rules)
    return client !== undefined && drafts.push({ client, learned: [] }) > 0
  }
  if (draft === undefined) return false
  if (kind !== 'answer' && kind !== 'zombie') return false
  const one = kind === 'answer' ? scanAnswer(values, writtenMs) : scanZombie(values, writtenMs)
  return one !== undefined && draft.learned.push(one) > 0
}

function scanClient(values: readonly unknown[], rules: readonly ClientRules[]): Client | undefined {
  const [id, list, place] = values
  const addresses = addressesOf(list)
  const found = rules[numberOf(place) ?? -1]
  if (typeof id !== 'string' || addresses === undefined || found === undefined) return undefined
  return { id, addresses, rules: found }
}

function scanAnswer(values: readonly unknown[], writtenMs: number): DatedAnswer | undefined {
  const [text, lookup, ttl, end, list] = values
  const [name, addresses] = [keyOf(text), addressesOf(list)]
  const [lookupMs, ttlSeconds, endMs] = [lookup, ttl, end].map(numberOf)
  if (name === undefined || addresses === undefined || lookupMs === undefined) return undefined
  if (ttlSeconds === undefined || endMs === undefined) return undefined
  return {
    name,
    addresses,
    lookupMs: writtenMs + Math.min(0, lookupMs),
    ttlSeconds: Math.min(Math.max(0, ttlSeconds), TTL_SECONDS_MAX),
    endMs: writtenMs + Math.min(endMs, SPAN_MS_MAX),
  }
}

function scanZombie(values: readonly unknown[], writtenMs: number): Zombie | undefined {
  const [text, list, alive, end, kept] = values
  const [address] = addressesOf([text]) ?? []
  const keys = (Array.isArray(list) ? list : []).map(keyOf).filter((key) => key !== undefined)
  const names = new Set(keys)
  const [endMs, keptMs] = [end, kept].map(numberOf)
  if (address === undefined || names.size === 0) return undefined
  if (endMs === undefined || keptMs === undefined) return undefined
  const aliveMs = alive === null ? Number.NEGATIVE_INFINITY : (numberOf(alive) ?? 0)
  return {
    address,
    names,
    aliveMs: writtenMs + Math.min(0, aliveMs),
    endMs: writtenMs + Math.min(endMs, SPAN_MS_MAX),
    keptMs: writtenMs + Math.min(keptMs, SPAN_MS_MAX),
  }
}

/** The key of a name; undefined = something else. */
function keyOf(value: unknown): string | undefined {
  const name = typeof value === 'string' && value.endsWith('.') ? scanName(value) : undefined
  return name === undefined ? undefined : nameKey(name)
}

/** Addresses in canonical form; undefined = something else. */
function addressesOf(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined
  const addresses: string[] = []
  for (const text of value) {
    const address = typeof text === 'string' ? scanAddress(text) : undefined
    if (address === undefined) return undefined
    addresses.push(printAddress(address.bytes, address.family))
  }
  return addresses
}

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined
}

function scanArray(line: string): unknown[] | undefined {
  const value = scanJsonText(line)
  return Array.isArray(value) ? value : undefined
}
