import type { LinearRegExp } from '../../base/re2/linear-regexp.ts'

/** Replaces a printed name; returns undefined if it does not match. */
export type NameChange = (name: string) => string | undefined

export const MATCH_KINDS = ['exact', 'prefix', 'suffix', 'substring', 'regex'] as const
export type MatchKind = (typeof MATCH_KINDS)[number]

/** A change of names that are equal to `from`, or begin with, end with or contain it. */
export function plainChange(kind: MatchKind, from: string, to: string): NameChange {
  switch (kind) {
    case 'prefix':
      return (name) => (name.startsWith(from) ? to + name.slice(from.length) : undefined)
    case 'suffix':
      return (name) =>
        name.endsWith(from) ? name.slice(0, name.length - from.length) + to : undefined
    case 'substring':
      return (name) => (name.includes(from) ? name.replaceAll(from, () => to) : undefined)
    default:
      return (name) => (name === from ? to : undefined)
  }
}

/** A change of names that match; `{1}` in `to` stands for the first group, `{0}` for the match. */
export function regexChange(pattern: LinearRegExp, to: string): NameChange {
  return (name) => {
    const groups = pattern.exec(name)
    if (groups === undefined) return undefined
    return to.replaceAll(/\{(\d+)\}/g, (whole, index: string) => groups[Number(index)] ?? whole)
  }
}

/** A change of `from` and of names below it. */
export function remap(from: string, to: string): NameChange {
  return (name) => {
    if (name === from) return to
    const head = name.length - from.length
    if (head <= 0 || name[head - 1] !== '.' || !name.endsWith(from)) return undefined
    return name.slice(0, head) + to
  }
}

/** How many different groups a replacement uses. */
export function countGroups(to: string): number {
  return new Set([...to.matchAll(/\{(?:\d|[1-9]\d|100)\}/g)].map(([group]) => group)).size
}

/** Lower case, with the final dot. */
export function normalize(name: string): string {
  const isAbsolute = /(?:^|[^\\])(?:\\\\)*\.$/.test(name)
  return (isAbsolute ? name : `${name}.`).toLowerCase()
}
