import { type Node, parsePattern, type Ranges } from '../src/base/re2/syntax.ts'

/** More copies of a repetition with a limit are as ambiguous as these. */
const COPIES_MAX = 3

/** Positions of characters in a pattern where a match may begin and end. */
interface Part {
  readonly isNullable: boolean
  readonly first: readonly number[]
  readonly last: readonly number[]
}

const EMPTY: Part = { isNullable: true, first: [], last: [] }

/** The characters of a pattern, and which of them may follow which (Glushkov's automaton). */
class Automaton {
  readonly sets: Ranges[] = []
  readonly follows: Set<number>[] = []
  /** True if two loops lead from one character to another, as in `(a*)*`. */
  hasNestedLoops = false

  add(node: Node): Part {
    switch (node.kind) {
      case 'assertion':
        return EMPTY
      case 'group':
        return this.add(node.body)
      case 'character': {
        const position = this.sets.push(node.ranges) - 1
        this.follows.push(new Set())
        return { isNullable: false, first: [position], last: [position] }
      }
      case 'sequence':
        return node.items.map((item) => this.add(item)).reduce((a, b) => this.#join(a, b), EMPTY)
      case 'alternation': {
        const parts = node.items.map((item) => this.add(item))
        return {
          isNullable: parts.some(({ isNullable }) => isNullable),
          first: parts.flatMap(({ first }) => first),
          last: parts.flatMap(({ last }) => last),
        }
      }
      case 'repetition':
        return this.#repeat(node)
    }
  }

  #join(a: Part, b: Part): Part {
    for (const from of a.last) for (const to of b.first) this.follows[from]!.add(to)
    return {
      isNullable: a.isNullable && b.isNullable,
      first: a.isNullable ? [...a.first, ...b.first] : a.first,
      last: b.isNullable ? [...a.last, ...b.last] : b.last,
    }
  }

  #repeat({ body, min, max }: Node & { kind: 'repetition' }): Part {
    const isLoop = max === Number.POSITIVE_INFINITY
    const copies = Math.min(COPIES_MAX, Math.max(min, isLoop ? 1 : max))
    let whole = EMPTY
    // From the last copy to the first: a copy is tried only if the one before it matched.
    for (let i = copies - 1; i >= 0; i--) {
      const part = this.add(body)
      if (isLoop && i === copies - 1) this.#loop(part)
      whole = this.#join(part, whole)
      if (i >= min) whole = { ...whole, isNullable: true }
    }
    return whole
  }

  #loop({ first, last }: Part): void {
    for (const from of last) {
      for (const to of first) {
        if (this.follows[from]!.has(to)) this.hasNestedLoops = true
        this.follows[from]!.add(to)
      }
    }
  }
}

/**
 * True if a text may match a part of the pattern in more ways the longer it is, so that a search that backtracks takes
 * quadratic or exponential time: characters P and Q exist so that one text leads from P to P, from P to Q, and from Q
 * to Q. A search without `^` tries each start, which is not counted. `source`: of a literal of JavaScript. Look-around
 * and references to groups count as nothing.
 */
export function isAmbiguous(source: string): boolean {
  const automaton = new Automaton()
  automaton.add(parsePattern(inGo(source)).body)
  if (automaton.hasNestedLoops) return true
  const { sets, follows } = automaton
  const ends = new Set(sets.flat().flat())
  const masks = sets.map((ranges) => {
    const has = (c: number): boolean => ranges.some(([first, last]) => first <= c && c <= last)
    return [...ends].reduce((mask, c, i) => (has(c) ? mask | (1n << BigInt(i)) : mask), 0n)
  })
  const leads = (p: number, q: number): boolean => {
    const goal = `${p} ${q} ${q}`
    const seen = new Set<string>()
    const open: (readonly [number, number, number])[] = [[p, p, q]]
    for (let at = open.pop(); at !== undefined; at = open.pop()) {
      for (const a of follows[at[0]]!) {
        for (const b of follows[at[1]]!) {
          if ((masks[a]! & masks[b]!) === 0n) continue
          for (const c of follows[at[2]]!) {
            const key = `${a} ${b} ${c}`
            if (seen.has(key) || (masks[a]! & masks[b]! & masks[c]!) === 0n) continue
            if (key === goal) return true
            seen.add(key)
            open.push([a, b, c])
          }
        }
      }
    }
    return false
  }
  const positions = [...sets.keys()].filter((p) => reaches(follows, p, p))
  return positions.some((p) =>
    positions.some((q) => p !== q && reaches(follows, p, q) && leads(p, q)),
  )
}

function reaches(follows: readonly ReadonlySet<number>[], from: number, to: number): boolean {
  const seen = new Set<number>()
  const open = [from]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const next of follows[at]!) {
      if (next === to) return true
      if (!seen.has(next)) open.push(next)
      seen.add(next)
    }
  }
  return false
}

/** The same in Go's syntax, as far as the ways to match are concerned. */
function inGo(source: string): string {
  return source
    .replaceAll(/\(\?<?[=!][^()]*\)/g, '')
    .replaceAll(/\\u([0-9a-f]{4})/gi, '\\x{$1}')
    .replaceAll(/\\p\{\w+\}/g, '\\x{9f}')
    .replaceAll(/\\([1-9])(?!\d)/g, '')
    .replaceAll(/,\d{3,}\}/g, ',99}')
}
