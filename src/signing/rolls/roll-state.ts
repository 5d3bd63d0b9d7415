import { InputError } from '../../base/errors.ts'
import { printTime, scanTime } from '../../base/rfc3339.ts'
import { printAlgorithm, scanAlgorithm } from '../../dns/dnssec/algorithms.ts'
import type { KeyRole } from './policy.ts'

/** Which keys a zone should have. */
export interface KeyLayout {
  readonly split: boolean
  readonly algorithm: number
}

/** A key of the zone that this server, or another one with the same keys, signs with. */
export interface RollKey {
  readonly id: string
  readonly role: KeyRole
  readonly algorithm: number
  /** False = the key goes out of use. */
  readonly isWanted: boolean
  /** When it got its role. */
  readonly sinceSeconds: number
}

/** A former set of keys, which caches may still have. */
export interface OldVersion {
  readonly keys: readonly string[]
  /** When caches could last get it; 0 = they still can. */
  readonly sinceSeconds: number
  /** When the last cache drops it; Infinity = the next version is not served everywhere yet. */
  readonly untilSeconds: number
}

/**
 * The ids of keys in one set of records: those of the DNSKEY RRset, those whose signatures the zone has, those of the
 * DS RRset. The rest of a roll follows from it: a key is hidden if no version has it, omnipresent if all have it,
 * rumoured if old ones lack it, unretentive if only old ones have it (RFC 7583).
 */
export interface Timeline {
  /** Sorted. */
  readonly keys: readonly string[]
  readonly sinceSeconds: number
  /** True = it is served; of DS: the parent serves it. */
  readonly isKnown: boolean
  /** Greatest TTL with which caches may have this version, or the one before it. */
  readonly ttlSeconds: number
  readonly older: readonly OldVersion[]
}

export const TIMELINES = ['dnskey', 'signers', 'ds'] as const
export type TimelineName = (typeof TIMELINES)[number]

/** What `sextant keys` asks the server for. */
export type RollRequest =
  | { readonly kind: 'roll'; readonly role: KeyRole }
  | { readonly kind: 'layout'; readonly layout: KeyLayout }
  | { readonly kind: 'retire'; readonly id: string }
  /** The parent has exactly the DS of these keys. */
  | { readonly kind: 'published'; readonly ids: readonly string[] }
  /** Whether the parent should have a DS: `0 0 0 00` asks it to remove all (RFC 8078 section 4). */
  | { readonly kind: 'delegation'; readonly isSigned: boolean }

/** A server that makes a key now. Others wait until that time. */
interface CreationClaim {
  readonly server: string
  readonly untilSeconds: number
}

/** The rolls of one zone. */
export interface RollState extends Readonly<Record<TimelineName, Timeline>> {
  /** The layout of the policy when it was last read. If it changes, `wanted` changes too. */
  readonly configured: KeyLayout
  readonly wanted: KeyLayout
  /** False = the DS should be removed. */
  readonly isSigned: boolean
  /** When all servers serve the CDS of `ds`, and the parent can follow no older ones; Infinity = no server does yet. */
  readonly askedSeconds: number
  readonly keys: readonly RollKey[]
  readonly claim: CreationClaim | undefined
  readonly requests: readonly RollRequest[]
}

const HEADER = 'sextant key rolls 1'
const NOTE = '# Written by the server. `sextant keys` adds requests.'
const NONE = '-'
const PENDING = 'pending'
const ROLES: readonly KeyRole[] = ['csk', 'ksk', 'zsk']
/** Requests that wait; more of them are a fault of a script. */
const REQUESTS_MAX = 100

/** Returns the state as lines of text. */
export function printRollState(state: RollState): string {
  const { claim } = state
  const lines = [
    HEADER,
    NOTE,
    `configured ${printLayout(state.configured)}`,
    `wanted ${printLayout(state.wanted)}`,
    `delegation ${state.isSigned ? 'signed' : 'unsigned'}`,
    ...state.keys.map(printKey),
    `cds ${printEnd(state.askedSeconds)}`,
    ...TIMELINES.flatMap((name) => printTimeline(name, state[name])),
    ...(claim === undefined ? [] : [`claim ${printSeconds(claim.untilSeconds)} ${claim.server}`]),
    ...state.requests.map(printRequest),
  ]
  return `${lines.join('\n')}\n`
}

/** @throws InputError, which names the line. */
export function scanRollState(text: string): RollState {
  const [header, ...lines] = text.split('\n')
  if (header !== HEADER) {
    throw new InputError(undefined, `the state of key rolls must begin with '${HEADER}'`)
  }
  const draft: Draft = { keys: [], requests: [] }
  for (const [i, line] of lines.entries()) {
    if (line === '' || line.startsWith('#')) continue
    if (!scanLine(draft, line.split(' '))) {
      const fix = 'restore the file from a backup, or move it away with all keys but those in use'
      throw new InputError(undefined, `the state of key rolls has an invalid line ${i + 2}; ${fix}`)
    }
  }
  const { configured, wanted, dnskey, signers, ds, isSigned, askedSeconds, claim } = draft
  const isWhole = configured && wanted && dnskey && signers && ds
  if (!isWhole || isSigned === undefined || askedSeconds === undefined) {
    throw new InputError(undefined, 'the state of key rolls is incomplete')
  }
  const { keys, requests } = draft
  const timelines = { dnskey, signers, ds }
  return { configured, wanted, isSigned, askedSeconds, keys, ...timelines, claim, requests }
}

/**
 * The `edit` of a key store that adds a request. @throws InputError if there is no state yet, or too many requests
 * wait.
 */
export function requestRoll(text: string | undefined, request: RollRequest): string {
  if (text === undefined) {
    throw new InputError(undefined, 'no server has signed the zone with these keys yet')
  }
  const state = scanRollState(text)
  const line = printRequest(request)
  if (state.requests.some((one) => printRequest(one) === line)) return text
  if (state.requests.length >= REQUESTS_MAX) {
    throw new InputError(undefined, `${REQUESTS_MAX} requests wait for the server; does it run?`)
  }
  return printRollState({ ...state, requests: [...state.requests, request] })
}

interface Draft {
  configured?: KeyLayout | undefined
  wanted?: KeyLayout | undefined
  dnskey?: Timeline | undefined
  signers?: Timeline | undefined
  ds?: Timeline | undefined
  isSigned?: boolean
  askedSeconds?: number | undefined
  claim?: CreationClaim | undefined
  readonly keys: RollKey[]
  readonly requests: RollRequest[]
}

/** Returns false if the line is invalid. */
function scanLine(draft: Draft, [word = '', ...rest]: readonly string[]): boolean {
  switch (word) {
    case 'configured':
    case 'wanted':
      return (draft[word] = scanLayout(rest)) !== undefined
    case 'delegation':
      draft.isSigned = rest[0] === 'signed'
      return rest[0] === 'signed' || rest[0] === 'unsigned'
    case 'cds':
      return (draft.askedSeconds = scanEnd(rest[0] ?? '')) !== undefined
    case 'key':
      return add(draft.keys, scanKey(rest))
    case 'claim':
      draft.claim = scanClaim(rest)
      return draft.claim !== undefined
    case 'request':
      return add(draft.requests, scanRequest(rest))
    case 'dnskey':
    case 'signers':
    case 'ds':
      return (draft[word] = scanCurrent(rest)) !== undefined
    default:
      return scanOlder(draft, word, rest)
  }
}

function add<T>(list: T[], item: T | undefined): boolean {
  if (item === undefined) return false
  list.push(item)
  return true
}

function printLayout({ split, algorithm }: KeyLayout): string {
  return `${split ? 'split' : 'csk'} ${printAlgorithm(algorithm)}`
}

function scanLayout([kind, name = '']: readonly string[]): KeyLayout | undefined {
  const algorithm = scanAlgorithm(name)
  if (algorithm === undefined || (kind !== 'split' && kind !== 'csk')) return undefined
  return { split: kind === 'split', algorithm }
}

function printKey({ id, role, algorithm, isWanted, sinceSeconds }: RollKey): string {
  const goal = isWanted ? 'in' : 'out'
  return `key ${id} ${role} ${printAlgorithm(algorithm)} ${goal} ${printSeconds(sinceSeconds)}`
}

function scanKey([id, word, name = '', goal, time = '']: readonly string[]): RollKey | undefined {
  const role = ROLES.find((one) => one === word)
  const algorithm = scanAlgorithm(name)
  const sinceSeconds = scanSeconds(time)
  if (!id || role === undefined || algorithm === undefined || sinceSeconds === undefined) {
    return undefined
  }
  if (goal !== 'in' && goal !== 'out') return undefined
  return { id, role, algorithm, isWanted: goal === 'in', sinceSeconds }
}

function printTimeline(name: TimelineName, timeline: Timeline): string[] {
  const { keys, sinceSeconds, isKnown, ttlSeconds, older } = timeline
  const known = isKnown ? 'known' : PENDING
  return [
    `${name} ${printSeconds(sinceSeconds)} ${known} ${ttlSeconds} ${printIds(keys)}`,
    ...older.map(({ keys, sinceSeconds, untilSeconds }) => {
      return `${name}-until ${printEnd(untilSeconds)} ${printSeconds(sinceSeconds)} ${printIds(keys)}`
    }),
  ]
}

function scanCurrent([time = '', known, ttl = '', ...ids]: readonly string[]):
  | Timeline
  | undefined {
  const sinceSeconds = scanSeconds(time)
  if (sinceSeconds === undefined || !/^\d{1,10}$/.test(ttl) || ids.length === 0) return undefined
  if (known !== 'known' && known !== PENDING) return undefined
  const isKnown = known === 'known'
  return { keys: scanIds(ids), sinceSeconds, isKnown, ttlSeconds: Number(ttl), older: [] }
}

function scanOlder(
  draft: Draft,
  word: string,
  [until = '', since = '', ...ids]: readonly string[],
): boolean {
  const name = TIMELINES.find((one) => word === `${one}-until`)
  const timeline = name === undefined ? undefined : draft[name]
  const sinceSeconds = scanSeconds(since)
  const untilSeconds = scanEnd(until)
  if (!name || !timeline || sinceSeconds === undefined || untilSeconds === undefined) return false
  if (ids.length === 0) return false
  const version = { keys: scanIds(ids), sinceSeconds, untilSeconds }
  draft[name] = { ...timeline, older: [...timeline.older, version] }
  return true
}

function printEnd(seconds: number): string {
  return seconds === Infinity ? PENDING : printSeconds(seconds)
}

function scanEnd(text: string): number | undefined {
  return text === PENDING ? Infinity : scanSeconds(text)
}

function printIds(ids: readonly string[]): string {
  return ids.length === 0 ? NONE : ids.join(' ')
}

function scanIds(ids: readonly string[]): readonly string[] {
  return ids[0] === NONE ? [] : [...new Set(ids)].sort()
}

function scanClaim([time = '', server]: readonly string[]): CreationClaim | undefined {
  const untilSeconds = scanSeconds(time)
  return !server || untilSeconds === undefined ? undefined : { server, untilSeconds }
}

/** Returns a request as a line of the state. */
export function printRequest(request: RollRequest): string {
  switch (request.kind) {
    case 'roll':
      return `request roll ${request.role}`
    case 'layout':
      return `request layout ${printLayout(request.layout)}`
    case 'retire':
      return `request retire ${request.id}`
    case 'published':
      return `request published ${printIds(request.ids)}`
    case 'delegation':
      return `request delegation ${request.isSigned ? 'signed' : 'unsigned'}`
  }
}

function scanRequest([kind, ...args]: readonly string[]): RollRequest | undefined {
  const [first = ''] = args
  if (first === '') return undefined
  if (kind === 'retire') return { kind, id: first }
  if (kind === 'published') return { kind, ids: scanIds(args) }
  if (kind === 'roll') {
    const role = ROLES.find((one) => one === first)
    return role === undefined ? undefined : { kind, role }
  }
  if (kind === 'layout') {
    const layout = scanLayout(args)
    return layout === undefined ? undefined : { kind, layout }
  }
  if (kind !== 'delegation' || (first !== 'signed' && first !== 'unsigned')) return undefined
  return { kind, isSigned: first === 'signed' }
}

/** Times of the state are whole seconds. */
function printSeconds(seconds: number): string {
  return printTime(seconds * 1000)
}

function scanSeconds(text: string): number | undefined {
  const ms = scanTime(text)
  return ms === undefined ? undefined : Math.floor(ms / 1000)
}
