import type { AnswerMap, MapAnswer, MapPlace, MapShare } from '../../../../../plugin/admin-map.ts'

/** A row of the table: what the clients of a place get. */
export interface MapRow {
  readonly code: string
  /** Largest share first. */
  readonly shares: readonly MapShare[]
  readonly sharesOmitted: number
  /** Addresses or names, sorted. */
  readonly targets: readonly string[]
}

/** A part of the fill of a place. */
export interface FillPart {
  /** Index of the answer; -1 = all others. */
  readonly answer: number
  /** 0..1; the parts of a fill add up to 1. */
  readonly part: number
}

/** Answers in one fill. */
const PARTS_MAX = 4

export function rowsOf({ groups, answers }: AnswerMap, places: readonly MapPlace[]): MapRow[] {
  const targets = groups.map(({ shares }) => {
    const served = shares.flatMap(({ answer }) => answers[answer]?.targets ?? [])
    return [...new Set(served)].sort()
  })
  return places.map(({ code, group }) => {
    return { code, ...groups[group]!, targets: targets[group]! }
  })
}

/** The larger one of both families, which a map shows. */
export function shareOf({ ipv4, ipv6 }: MapShare): number {
  return Math.max(ipv4, ipv6)
}

/** Returns the parts of a fill, by answer. Answers that clients get together have equal parts. */
export function fillOf(shares: readonly MapShare[]): FillPart[] {
  const total = shares.reduce((sum, share) => sum + shareOf(share), 0)
  if (total === 0) return []
  const most = shares.length > PARTS_MAX ? PARTS_MAX - 1 : PARTS_MAX
  const parts = shares.slice(0, most).map((share) => {
    return { answer: share.answer, part: shareOf(share) / total }
  })
  parts.sort((a, b) => a.answer - b.answer)
  const rest = 1 - parts.reduce((sum, { part }) => sum + part, 0)
  return shares.length > most ? [...parts, { answer: -1, part: rest }] : parts
}

/** Answers that clients of some place get, by index, then those out of service. */
export function orderOf({ answers, groups }: AnswerMap): number[] {
  const served = new Set(groups.flatMap(({ shares }) => shares.map(({ answer }) => answer)))
  const all = answers.map((_, i) => i)
  return [...all.filter((i) => served.has(i)), ...all.filter((i) => !served.has(i))]
}

/** `answer`: undefined = it is one of those that the reply leaves out. */
export function labelOf(answer: MapAnswer | undefined): string {
  if (answer === undefined) return 'an endpoint that is not listed'
  const { targets, setIdentifier, state } = answer
  if (state === 'no data') return 'no data'
  const [first = '', ...rest] = targets
  const text = rest.length === 0 ? first : `${first} and ${rest.length} more`
  return setIdentifier === '' ? text : `${text} (${setIdentifier})`
}

/** Where the map is shown: a point `p` of the world is drawn at `p * scale + offset`. */
export interface Frame {
  readonly scale: number
  readonly x: number
  readonly y: number
}

export const WORLD_WIDTH = 960
export const WORLD_HEIGHT = 480
export const WHOLE: Frame = { scale: 1, x: 0, y: 0 }
const SCALE_MAX = 40

/** Zooms around a point, and keeps the world in sight. */
export function zoomAt({ scale, x, y }: Frame, factor: number, atX: number, atY: number): Frame {
  const next = Math.min(SCALE_MAX, Math.max(1, scale * factor))
  const ratio = next / scale
  return bounded({ scale: next, x: atX - (atX - x) * ratio, y: atY - (atY - y) * ratio })
}

export function move({ scale, x, y }: Frame, byX: number, byY: number): Frame {
  return bounded({ scale, x: x + byX, y: y + byY })
}

function bounded({ scale, x, y }: Frame): Frame {
  const within = (value: number, size: number): number => {
    return Math.min(0, Math.max(size - size * scale, value))
  }
  return { scale, x: within(x, WORLD_WIDTH), y: within(y, WORLD_HEIGHT) }
}
