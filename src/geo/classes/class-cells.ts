import { assert } from '../../base/assert.ts'
import { InputError } from '../../base/errors.ts'
import { type Cidr, scanCidr } from '../../dns/text/address.ts'
import { type ClassTrieData, LEAF } from '../class-trie.ts'
import { leafOf, TrieBuilder } from './trie-builder.ts'

/** The addresses that have the same class in each of several tries. */
export interface ClassCell {
  /** By trie. */
  readonly classes: readonly number[]
  /** Part of the space that is in the cell, 0..1. */
  readonly parts: Readonly<Record<Space, number>>
}

/**
 * The address spaces that are measured. `ipv4`, `ipv6`: addresses that clients on the Internet can
 * have, by count of addresses. `ipv6` has the prefixes of 2000::/3 that a trie puts into another class
 * than 0, because most of 2000::/3 is not allocated. If no trie has such a prefix, it has all of
 * 2000::/3. `private4`, `private6`: RFC 1918, RFC 6598 and RFC 4193. All other prefixes are left out,
 * because no client has such an address.
 */
export const SPACES = ['ipv4', 'ipv6', 'private4', 'private6'] as const
export type Space = (typeof SPACES)[number]

const OUTSIDE = 0
const PUBLIC = 1
const PRIVATE = 2

/** The kind of each prefix; a longer prefix replaces a part of a shorter one. */
const KINDS: readonly (readonly [kind: number, cidr: Cidr])[] = [
  [PUBLIC, '0.0.0.0/0'],
  [OUTSIDE, '0.0.0.0/8'],
  [PRIVATE, '10.0.0.0/8'],
  [PRIVATE, '100.64.0.0/10'],
  [OUTSIDE, '127.0.0.0/8'],
  [OUTSIDE, '169.254.0.0/16'],
  [PRIVATE, '172.16.0.0/12'],
  [OUTSIDE, '192.0.2.0/24'],
  [PRIVATE, '192.168.0.0/16'],
  [OUTSIDE, '198.18.0.0/15'],
  [OUTSIDE, '198.51.100.0/24'],
  [OUTSIDE, '203.0.113.0/24'],
  // Multicast and reserved.
  [OUTSIDE, '224.0.0.0/3'],
  [PUBLIC, '2000::/3'],
  [OUTSIDE, '2001:db8::/32'],
  [PRIVATE, 'fc00::/7'],
].map(([kind, text]) => {
  const cidr = scanCidr(text as string)
  assert(cidr !== undefined, `${text} is a prefix`)
  return [kind as number, cidr]
})

/** Nodes that a walk visits at most. The largest databases have some millions of prefixes. */
const VISITS_MAX = 100_000_000

/** Number of tries that are walked at once. */
const TRIES_MAX = 3

const FAMILIES = [
  [1, 'ipv4', 'private4'],
  [2, 'ipv6', 'private6'],
] as const

/**
 * Returns the cells of up to three tries that are walked at once, with the part of each address space
 * that they have. Exact, except for the rounding of floating-point numbers. The time is proportional
 * to the prefixes that the tries distinguish. Throws InputError if these are too many.
 */
export function measureCells(tries: readonly ClassTrieData[]): ClassCell[] {
  assert(tries.length <= TRIES_MAX, 'at most three tries')
  const cells = new Map<string, { classes: readonly number[]; parts: Record<Space, number> }>()
  for (const [family, open, closed] of FAMILIES) {
    const roots = tries.map(({ rootIPv4, rootIPv6 }) => (family === 1 ? rootIPv4 : rootIPv6))
    const walk = new JointWalk(tries, kindsOf(family))
    walk.visit(walk.kindRoot, roots[0] ?? LEAF, roots[1] ?? LEAF, roots[2] ?? LEAF, 1)
    const total = walk.totals()
    for (const { kind, classes, part } of walk.found.values()) {
      const list = classes.slice(0, tries.length)
      const cell = cells.get(list.join()) ?? { classes: list, parts: { ...NO_PARTS } }
      cells.set(list.join(), cell)
      cell.parts[kind === PUBLIC ? open : closed] += part / total[kind]!
    }
  }
  leaveOutUnknown([...cells.values()])
  return [...cells.values()]
}

const NO_PARTS: Readonly<Record<Space, number>> = { ipv4: 0, ipv6: 0, private4: 0, private6: 0 }

/** Counts only IPv6 addresses that some trie knows, unless no trie knows any. */
function leaveOutUnknown(
  cells: readonly { classes: readonly number[]; parts: Record<Space, number> }[],
): void {
  const isKnown = ({ classes }: ClassCell): boolean => classes.some((number) => number !== 0)
  const total = cells.filter(isKnown).reduce((sum, { parts }) => sum + parts.ipv6, 0)
  if (total === 0) return
  for (const cell of cells) cell.parts.ipv6 = isKnown(cell) ? cell.parts.ipv6 / total : 0
}

/** The kinds of the addresses of a family, as a trie. */
function kindsOf(family: 1 | 2): { words: Uint32Array; root: number } {
  const builder = new TrieBuilder()
  const trie = KINDS.filter(([, cidr]) => cidr.family === family).reduce(
    (under, [kind, { bytes, bits }]) => builder.graft(under, bytes, bits, () => leafOf(kind)),
    leafOf(OUTSIDE),
  )
  const { words, roots } = builder.compact([trie])
  return { words, root: roots[0]! }
}

/** The addresses of one kind with the same classes. */
interface FoundCell {
  readonly kind: number
  readonly classes: readonly number[]
  part: number
}

/** Walks three tries and that of the kinds at once. */
class JointWalk {
  readonly kindRoot: number
  readonly found = new Map<number, FoundCell>()
  readonly #kinds: Uint32Array
  readonly #a: Uint32Array
  readonly #b: Uint32Array
  readonly #c: Uint32Array
  /** Number of classes of the second and third trie. */
  readonly #countB: number
  readonly #countC: number
  #visits = 0

  constructor(tries: readonly ClassTrieData[], kinds: { words: Uint32Array; root: number }) {
    this.kindRoot = kinds.root
    this.#kinds = kinds.words
    this.#a = tries[0]?.words ?? NO_WORDS
    this.#b = tries[1]?.words ?? NO_WORDS
    this.#c = tries[2]?.words ?? NO_WORDS
    this.#countB = tries[1]?.codesOf.length ?? 1
    this.#countC = tries[2]?.codesOf.length ?? 1
  }

  /** The part of the addresses that have each kind. */
  totals(): number[] {
    const totals = [0, 0, 0]
    for (const { kind, part } of this.found.values()) totals[kind]! += part
    return totals
  }

  /** Visits the addresses below one word of each trie. `part`: their part of the whole family. */
  visit(kind: number, a: number, b: number, c: number, part: number): void {
    if (kind === LEAF + OUTSIDE) return
    if (kind >= LEAF && a >= LEAF && b >= LEAF && c >= LEAF) {
      this.#add(kind - LEAF, a - LEAF, b - LEAF, c - LEAF, part)
      return
    }
    if (++this.#visits > VISITS_MAX) throw new InputError(undefined, TOO_MANY)
    for (let bit = 0; bit < 2; bit++) {
      this.visit(
        kind < LEAF ? this.#kinds[kind * 2 + bit]! : kind,
        a < LEAF ? this.#a[a * 2 + bit]! : a,
        b < LEAF ? this.#b[b * 2 + bit]! : b,
        c < LEAF ? this.#c[c * 2 + bit]! : c,
        part / 2,
      )
    }
  }

  #add(kind: number, a: number, b: number, c: number, part: number): void {
    const key = ((a * this.#countB + b) * this.#countC + c) * KIND_COUNT + kind
    const cell = this.found.get(key)
    if (cell !== undefined) cell.part += part
    else this.found.set(key, { kind, classes: [a, b, c], part })
  }
}

const KIND_COUNT = 3
const NO_WORDS = new Uint32Array(0)
const TOO_MANY = 'the location database has too many prefixes to measure'
