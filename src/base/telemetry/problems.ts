import type { InputError } from '../errors.ts'

/**
 * What can be wrong while a server runs, the worst first: the values of `kind` in the status, and of a label of the
 * metric.
 */
export const PROBLEM_KINDS = [
  'corefile',
  'bypass',
  'upstream',
  'zone-file',
  'manifest',
  'refused-record',
  'ignored-record',
  'duplicate-record',
  'foreign-name',
  'conflict',
  'alias',
  'ignored-part',
  'drain',
  'unprobed-address',
  'geo-database',
  'geo-code',
  'signature',
  'zone-key',
  'secondary-zone',
  'silent-peer',
  'peer-endpoint',
  'hosts-file',
  'state-file',
  'admin-token',
] as const
export type ProblemKind = (typeof PROBLEM_KINDS)[number]

/** Problems of one kind that are listed; the others are counted. */
export const LISTED_MAX = 20
/** Characters of a text that are kept. */
const TEXT_MAX = 600

/** One problem, without its kind. Texts may quote hostile input: the reader escapes them. */
export interface ProblemText {
  /** `file:line`, the address of a peer, or `kubernetes`. */
  readonly place: string
  /** `namespace/name` of a DNSRecord, `zone example.org.`, or another thing that has the problem. */
  readonly object: string
  /** What is wrong, what is served meanwhile, and the fix. Names the object. */
  readonly reason: string
}

/** All problems of one kind that one thing has. */
export interface ProblemGroup {
  readonly kind: ProblemKind
  /** Groups of one kind with the same name are one: server blocks may share what has the problems. */
  readonly of: string
  readonly count: number
  /** Read up to LISTED_MAX, so it can be made as it is read. */
  readonly problems: Iterable<ProblemText>
}

/** The problems that one directive of one server block reports. `groups` must not throw. */
export interface ProblemReport {
  readonly plugin: string
  readonly groups: () => readonly ProblemGroup[]
}

export interface ServerProblem extends ProblemText {
  readonly kind: ProblemKind
  readonly plugin: string
}

/** The problems of a server. */
export interface Problems {
  /** Up to LISTED_MAX of each kind, in the order of PROBLEM_KINDS. */
  readonly listed: readonly ServerProblem[]
  /** All of them, by kind; only kinds that exist. */
  readonly counts: ReadonlyMap<ProblemKind, number>
}

/** Collects the problems of all directives. */
export function collectProblems(reports: readonly ProblemReport[]): Problems {
  const listed = new Map<ProblemKind, ServerProblem[]>()
  const counts = new Map<ProblemKind, number>()
  const seen = new Set<string>()
  for (const { plugin, groups } of reports) {
    for (const { kind, of, count, problems } of groups()) {
      const id = `${kind} ${of}`
      if (count === 0 || seen.has(id)) continue
      seen.add(id)
      counts.set(kind, (counts.get(kind) ?? 0) + count)
      const list = listed.get(kind) ?? []
      listed.set(kind, list)
      for (const one of problems) {
        if (list.length >= LISTED_MAX) break
        list.push({ kind, plugin, ...clipTexts(one) })
      }
    }
  }
  return {
    listed: PROBLEM_KINDS.flatMap((kind) => listed.get(kind) ?? []),
    counts: new Map(PROBLEM_KINDS.flatMap((kind) => entryOf(counts, kind))),
  }
}

/** Returns how many problems are not listed, by kind; only kinds that have some. */
export function countUnlisted<Kind extends string>(
  listed: readonly { readonly kind: Kind }[],
  counts: Iterable<readonly [kind: Kind, count: number]>,
): [kind: Kind, count: number][] {
  return [...counts]
    .map(([kind, count]): [Kind, number] => {
      return [kind, count - listed.filter((one) => one.kind === kind).length]
    })
    .filter(([, count]) => count > 0)
}

/** An error as a problem of `object`. */
export function problemOf({ position, message }: InputError, object: string): ProblemText {
  const place = position === undefined ? '' : `${position.file}:${position.line}`
  return { place, object, reason: message }
}

export function oneProblem(kind: ProblemKind, of: string, problem: ProblemText): ProblemGroup {
  return { kind, of, count: 1, problems: [problem] }
}

function entryOf(
  counts: ReadonlyMap<ProblemKind, number>,
  kind: ProblemKind,
): [kind: ProblemKind, count: number][] {
  const count = counts.get(kind)
  return count === undefined ? [] : [[kind, count]]
}

function clipTexts({ place, object, reason }: ProblemText): ProblemText {
  return { place: clip(place), object: clip(object), reason: clip(reason) }
}

function clip(text: string): string {
  return text.length <= TEXT_MAX ? text : `${text.slice(0, TEXT_MAX - 1)}…`
}
