import { type GeoCode, scanGeoCode } from '../geo/code.ts'
import { type Point, scanPoint } from '../geo/point.ts'

/**
 * The clients of a tier: those of a geo code, those whose nearest point it is, or those of a code whose
 * nearest point it is.
 */
export interface TierKey {
  /** Identifies the key: `DE`, `@52.52,13.40`, `DE@52.52,13.40`. No white space. */
  readonly text: string
  /** Undefined = clients that no code of the set matches. */
  readonly code: GeoCode | undefined
  /** Undefined = clients whose coordinates are unknown, or that no other tier of the code is for. */
  readonly point: Point | undefined
}

const SEPARATOR = '@'

/** `code` and `point` are not both undefined. */
export function tierKey(code: GeoCode | undefined, point?: Point): TierKey {
  const suffix = point === undefined ? '' : SEPARATOR + point.text
  return { text: `${code?.text ?? ''}${suffix}`, code, point }
}

/** Reads the text of a key; undefined = invalid. */
export function scanTierKey(text: string): TierKey | undefined {
  const at = text.indexOf(SEPARATOR)
  const codeText = at === -1 ? text : text.slice(0, at)
  const code = codeText === '' ? undefined : scanGeoCode(codeText)
  const point = at === -1 ? undefined : scanPoint(text.slice(at + 1))
  const isWhole =
    (code !== undefined) === (codeText !== '') && (point !== undefined) === (at !== -1)
  return isWhole && text !== '' ? tierKey(code, point) : undefined
}
