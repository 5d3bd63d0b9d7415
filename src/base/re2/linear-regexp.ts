import { Assertion, type Node, PatternError, parsePattern, type Ranges } from './syntax.ts'

/** Go rejects longer patterns in the places where CoreDNS accepts patterns. */
const PATTERN_LENGTH_MAX = 10_000
/** Bounds the memory of a match: a bit for each instruction and character. */
const INSTRUCTIONS_MAX = 10_000

const Op = { Character: 0, Split: 1, Jump: 2, Save: 3, Assert: 4, Match: 5 } as const
type Op = (typeof Op)[keyof typeof Op]

/**
 * A regular expression in Go's syntax (RE2), with Go's result: the leftmost match, and of those the
 * one that a backtracking search finds first. A match takes time proportional to the length of the
 * text, whatever the pattern: the search never visits an instruction twice at one character.
 * Characters are UTF-16 code units, and `(?i)` concerns ASCII letters only.
 */
export class LinearRegExp {
  readonly source: string
  /** Names of the groups; entry 0 is the whole match. '' = the group has no name. */
  readonly groupNames: readonly string[]
  readonly #ops: Op[] = []
  /** Operands: targets, the slot, or the index of a set or assertion. */
  readonly #first: number[] = []
  readonly #second: number[] = []
  readonly #sets: CharacterSet[] = []
  readonly #setOf = new Map<Ranges, number>()
  readonly #slots: Int32Array
  readonly #stack: number[] = []
  /** A bit for each (instruction, position) that the search visited. */
  #visited = new Int32Array(64)
  /** What a match that starts behind the first character begins with. Undefined: with anything. */
  readonly #firsts: CharacterSet | undefined

  /** Throws PatternError if the pattern is invalid or uses something that is not supported. */
  constructor(source: string) {
    if (source.length > PATTERN_LENGTH_MAX) {
      throw new PatternError(`regex pattern too long: ${source.length} > ${PATTERN_LENGTH_MAX}`)
    }
    this.source = source
    const { body, groupNames } = parsePattern(source)
    this.groupNames = groupNames
    this.#slots = new Int32Array(groupNames.length * 2)
    this.#compile(body)
    this.#emit(Op.Match)
    this.#firsts = this.#findFirsts()
  }

  test(text: string): boolean {
    return this.#search(text)
  }

  /** Returns the match and its groups; undefined if nothing matches. A group that took no part is ''. */
  exec(text: string): string[] | undefined {
    if (!this.#search(text)) return undefined
    const slots = this.#slots
    return this.groupNames.map((_, i) => {
      const start = slots[i * 2]!
      return start === -1 ? '' : text.slice(start, slots[i * 2 + 1])
    })
  }

  #search(text: string): boolean {
    const words = ((this.#ops.length * (text.length + 1)) >> 5) + 1
    if (words > this.#visited.length) this.#visited = new Int32Array(words)
    else this.#visited.fill(0, 0, words)
    if (this.#matchAt(text, 0)) return true
    const firsts = this.#firsts
    for (let start = 1; start <= text.length; start++) {
      if (firsts !== undefined && !firsts.has(text.charCodeAt(start))) continue
      if (this.#matchAt(text, start)) return true
    }
    return false
  }

  #matchAt(text: string, start: number): boolean {
    const slots = this.#slots.fill(-1)
    const stack = this.#stack
    stack.length = 0
    stack.push(0, start)
    while (stack.length > 0) {
      const at = stack.pop()!
      const instruction = stack.pop()!
      // The search went back behind a group: its slot gets the old value.
      if (instruction < 0) slots[-1 - instruction] = at
      else if (this.#follow(text, instruction, at)) {
        slots[0] = start
        return true
      }
    }
    return false
  }

  /** Runs until a match (true) or a failure; pushes the alternatives. */
  #follow(text: string, instruction: number, position: number): boolean {
    const stack = this.#stack
    const slots = this.#slots
    let pc = instruction
    let at = position
    for (;;) {
      const bit = pc * (text.length + 1) + at
      const mask = 1 << (bit & 31)
      if ((this.#visited[bit >> 5]! & mask) !== 0) return false
      this.#visited[bit >> 5]! |= mask
      const first = this.#first[pc]!
      switch (this.#ops[pc]!) {
        case Op.Character:
          if (at >= text.length || !this.#sets[first]!.has(text.charCodeAt(at))) return false
          at++
          pc++
          break
        case Op.Split:
          stack.push(this.#second[pc]!, at)
          pc = first
          break
        case Op.Jump:
          pc = first
          break
        case Op.Save:
          stack.push(-1 - first, slots[first]!)
          slots[first] = at
          pc++
          break
        case Op.Assert:
          if (!holds(first as Assertion, text, at)) return false
          pc++
          break
        default:
          slots[1] = at
          return true
      }
    }
  }

  #emit(op: Op, first = 0, second = 0): number {
    if (this.#ops.length >= INSTRUCTIONS_MAX) throw new PatternError('expression too large')
    this.#first.push(first)
    this.#second.push(second)
    return this.#ops.push(op) - 1
  }

  /** A repetition compiles its body several times, with the same sets. */
  #indexOfSet(ranges: Ranges): number {
    const known = this.#setOf.get(ranges)
    if (known !== undefined) return known
    const index = this.#sets.push(new CharacterSet(ranges)) - 1
    this.#setOf.set(ranges, index)
    return index
  }

  #findFirsts(): CharacterSet | undefined {
    const ranges: (readonly [number, number])[] = []
    const seen = new Set<number>()
    const open = [0]
    for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
      if (seen.has(pc)) continue
      seen.add(pc)
      const op = this.#ops[pc]!
      if (op === Op.Match) return undefined
      if (op === Op.Character) ranges.push(...this.#sets[this.#first[pc]!]!.ranges)
      else if (op === Op.Jump) open.push(this.#first[pc]!)
      else if (op === Op.Split) open.push(this.#first[pc]!, this.#second[pc]!)
      else if (op === Op.Save || this.#first[pc] !== Assertion.TextStart) open.push(pc + 1)
    }
    return new CharacterSet(ranges)
  }

  #compile(node: Node): void {
    switch (node.kind) {
      case 'character':
        this.#emit(Op.Character, this.#indexOfSet(node.ranges))
        return
      case 'assertion':
        this.#emit(Op.Assert, node.assertion)
        return
      case 'group':
        this.#emit(Op.Save, node.index * 2)
        this.#compile(node.body)
        this.#emit(Op.Save, node.index * 2 + 1)
        return
      case 'sequence':
        for (const item of node.items) this.#compile(item)
        return
      case 'alternation':
        this.#alternate(node.items)
        return
      default:
        this.#repeat(node.body, node.min, node.max, node.isLazy)
    }
  }

  #alternate(items: readonly Node[]): void {
    const jumps: number[] = []
    for (const [i, item] of items.entries()) {
      const isLast = i === items.length - 1
      const split = isLast ? -1 : this.#emit(Op.Split)
      if (!isLast) this.#first[split] = split + 1
      this.#compile(item)
      if (isLast) break
      jumps.push(this.#emit(Op.Jump))
      this.#second[split] = this.#ops.length
    }
    for (const jump of jumps) this.#first[jump] = this.#ops.length
  }

  #repeat(body: Node, min: number, max: number, isLazy: boolean): void {
    if (Number.isFinite(max)) {
      for (let i = 0; i < min; i++) this.#compile(body)
      const splits: number[] = []
      for (let i = min; i < max; i++) {
        splits.push(this.#emit(Op.Split))
        this.#compile(body)
      }
      for (const split of splits) this.#branch(split, split + 1, this.#ops.length, isLazy)
      return
    }
    for (let i = 0; i < min - 1; i++) this.#compile(body)
    // As in Go, `x*` is `(x+)?`: else a body that matches nothing would end the loop in another way.
    const skip = min === 0 ? this.#emit(Op.Split) : -1
    const start = this.#ops.length
    this.#compile(body)
    const loop = this.#emit(Op.Split)
    this.#branch(loop, start, loop + 1, isLazy)
    if (skip !== -1) this.#branch(skip, skip + 1, this.#ops.length, isLazy)
  }

  /** A split that prefers `more`, or `on` if it is lazy. */
  #branch(split: number, more: number, on: number, isLazy: boolean): void {
    this.#first[split] = isLazy ? on : more
    this.#second[split] = isLazy ? more : on
  }
}

class CharacterSet {
  readonly ranges: Ranges
  /** By ASCII character: 1 = contained. */
  readonly #ascii = new Uint8Array(0x80)

  constructor(ranges: Ranges) {
    this.ranges = ranges
    for (const [first, last] of ranges) this.#ascii.fill(1, first, last + 1)
  }

  /** `unit`: NaN, behind the end of a text, is in no set. */
  has(unit: number): boolean {
    if (unit < 0x80) return this.#ascii[unit] === 1
    for (const [first, last] of this.ranges) if (unit >= first && unit <= last) return true
    return false
  }
}

function holds(assertion: Assertion, text: string, at: number): boolean {
  switch (assertion) {
    case Assertion.TextStart:
      return at === 0
    case Assertion.TextEnd:
      return at === text.length
    case Assertion.LineStart:
      return at === 0 || text[at - 1] === '\n'
    case Assertion.LineEnd:
      return at === text.length || text[at] === '\n'
    default: {
      const isBoundary = isWord(text, at - 1) !== isWord(text, at)
      return isBoundary === (assertion === Assertion.WordBoundary)
    }
  }
}

function isWord(text: string, at: number): boolean {
  return /^\w/.test(text.charAt(at))
}
