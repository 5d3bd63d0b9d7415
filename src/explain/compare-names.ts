import { runWhole } from '../base/slices.ts'
import { printType, RRType } from '../dns/iana/types.ts'
import { ALIASES_MAX } from '../dns/message/direct-answer.ts'
import { printName } from '../dns/name/name.ts'
import type { ClassCell } from '../geo/classes/class-cells.ts'
import { lowerNameKey } from '../records/validate/names.ts'
import type { TierKey } from '../steering/tier-key.ts'
import type { RRsetData } from '../zone/image/types.ts'
import { answersKey, printAnswers } from './answers.ts'
import type { CellSet } from './cell-shares.ts'
import type { ServedName, ServedNames, SetTiers } from './served-names.ts'

/** What happens to an RRset. */
type ChangeKind =
  | 'added'
  | 'removed'
  | 'changed'
  /** The RRset is the same, but a name that its CNAME records lead to changes. */
  | 'leads'

/** One name and type that clients may get other answers for. */
export interface NameDifference {
  /** As text, with the final dot. */
  readonly name: string
  readonly type: string
  readonly kind: ChangeKind
  /** True if no client had an answer before: not even a wildcard matched. */
  readonly isNew: boolean
  /** The clients that get other answers. */
  readonly clients: CellSet
  /** Names of the same server block that the CNAME records lead to and that change. */
  readonly via: readonly string[]
  /** What changes. Takes time, so call it for what is printed. */
  details(): ChangeDetails
}

/** TTL and tiers that change. */
interface ChangeDetails {
  readonly ttl: { readonly before: number; readonly after: number } | undefined
  readonly tiers: readonly TierChange[]
}

/** A tier that changes. '' = the tier does not exist. */
interface TierChange {
  /** Geo code of the clients, or `other clients`, or `all clients`. */
  readonly clients: string
  readonly before: string
  readonly after: string
}

const ALL_CLIENTS = 'all clients'
const OTHER_CLIENTS = 'other clients'

function printClients({ code, point }: TierKey): string {
  const nearest = point === undefined ? [] : [`nearest ${point.text}`]
  return [...(code === undefined ? [] : [code.text]), ...nearest].join(', ')
}

/** The tiers that clients get before and after, by cell. */
interface TierPairs {
  /** By cell: index in `pairs`. */
  readonly pairOf: Int32Array
  readonly pairs: readonly (readonly [before: number, after: number])[]
  /** True if no client gets another tier. */
  readonly isDiagonal: boolean
  readonly haveSameCodes: boolean
}

/**
 * Compares the answers of one server block before and after. Each cell is a group of clients that have
 * one class before and one class after.
 */
export class NameComparison {
  readonly #before: ServedNames
  readonly #after: ServedNames
  readonly #cells: readonly ClassCell[]
  readonly #everyone: CellSet
  /** True if equal RRsets are one object, and serve the same clients. */
  readonly #isOneTable: boolean
  readonly #pairs = new Map<string, TierPairs>()
  readonly #sets = new Map<string, CellSet>()
  /**
   * By number of steps of a chain that are left, then by name: the clients that get other answers, of
   * any type. So a loop of CNAMEs ends.
   */
  readonly #reached = Array.from(
    { length: ALIASES_MAX + 1 },
    () => new Map<string, CellSet | undefined>(),
  )

  /** `cells`: of the tries of `before` and `after`, in this order. */
  constructor(before: ServedNames, after: ServedNames, cells: readonly ClassCell[]) {
    this.#before = before
    this.#after = after
    this.#cells = cells
    this.#isOneTable = before.table === after.table
    this.#everyone = new Uint8Array(cells.length).fill(1)
  }

  /** Returns every change, in the order of the names before and then of the names that are new. */
  changes(): NameDifference[] {
    return runWhole(this.changesInSteps())
  }

  /** As `changes`, with pauses. */
  *changesInSteps(): Generator<void, NameDifference[]> {
    const changes: NameDifference[] = []
    const names = new Map([...this.#before.names, ...this.#after.names])
    for (const key of names.keys()) {
      this.#compareName(key, changes)
      yield
    }
    return changes
  }

  #compareName(key: string, changes: NameDifference[]): void {
    const before = this.#before.find(key)
    const after = this.#after.find(key)
    if (before === after && this.#isOneTable && before?.sets.has(RRType.CNAME) === false) return
    const types = new Set([...(before?.sets.keys() ?? []), ...(after?.sets.keys() ?? [])])
    for (const type of types) {
      const [old, next] = [before?.sets.get(type), after?.sets.get(type)]
      const own = this.#compare(old, next)
      const clients = type === RRType.CNAME ? this.#reach(key, ALIASES_MAX) : own
      if (clients === undefined && this.#isAlike(old, next)) continue
      changes.push(this.#change(key, type, { old, next, own, clients }))
    }
  }

  #change(key: string, type: number, { old, next, own, clients }: Difference): NameDifference {
    const owner = (this.#after.names.get(key) ?? this.#before.names.get(key))!.owner
    const isOwn = own !== undefined || !this.#isAlike(old, next)
    return {
      name: printName(owner),
      type: printType(type),
      kind: isOwn ? kindOf(old, next) : 'leads',
      isNew: old === undefined,
      clients: clients ?? NO_CELLS,
      via: type === RRType.CNAME ? this.#changedTargets([old, next]) : [],
      details: () => this.#details(old, next),
    }
  }

  /** True if nothing changes that a client could see, not even the TTL. */
  #isAlike(old: RRsetData | undefined, next: RRsetData | undefined): boolean {
    if (old === undefined || next === undefined) return old === next
    return old.ttlSeconds === next.ttlSeconds && this.#haveEqualTiers(old, next)
  }

  /** True if both have the same codes, with the same answers for the clients of each code. */
  #haveEqualTiers(old: RRsetData, next: RRsetData): boolean {
    const [before, after] = [this.#before.tiersOf(old), this.#after.tiersOf(next)]
    if (!this.#pairsOf(before.policy, after.policy).haveSameCodes) return false
    if (isSameSet(old, next, before, after)) return true
    return before.tiers.every((tier, i) => {
      const key = answersKey(tier, before.answers[i]!, old.rdata)
      return key === answersKey(after.tiers[i]!, after.answers[i]!, next.rdata)
    })
  }

  /** Returns the clients that get other records, or other shares of them; undefined = no client does. */
  #compare(old: RRsetData | undefined, next: RRsetData | undefined): CellSet | undefined {
    if (old === next && this.#isOneTable) return undefined
    if (old === undefined || next === undefined) return old === next ? undefined : this.#everyone
    const before = this.#before.tiersOf(old)
    const after = this.#after.tiersOf(next)
    const pairs = this.#pairsOf(before.policy, after.policy)
    if (pairs.isDiagonal && isSameSet(old, next, before, after)) return undefined
    const differs = pairs.pairs.map(([i, k]) => {
      const key = answersKey(before.tiers[i]!, before.answers[i]!, old.rdata)
      return key === answersKey(after.tiers[k]!, after.answers[k]!, next.rdata) ? 0 : 1
    })
    if (!differs.includes(1)) return undefined
    const key = `${before.policy} ${after.policy} ${differs.join('')}`
    let set = this.#sets.get(key)
    if (set === undefined) {
      set = Uint8Array.from(pairs.pairOf, (pair) => differs[pair]!)
      this.#sets.set(key, set)
    }
    return set
  }

  #pairsOf(before: number | undefined, after: number | undefined): TierPairs {
    const key = `${before} ${after}`
    const known = this.#pairs.get(key)
    if (known !== undefined) return known
    const pairs: [number, number][] = []
    const numbers = new Map<string, number>()
    const pairOf = Int32Array.from(this.#cells, ({ classes: [old, next] }) => {
      const pair: [number, number] = [
        this.#before.tierOf(before, old!),
        this.#after.tierOf(after, next!),
      ]
      const number = numbers.get(pair.join()) ?? pairs.push(pair) - 1
      numbers.set(pair.join(), number)
      return number
    })
    const isDiagonal = pairs.every(([i, k]) => i === k)
    const [old, next] = [this.#labels(before, 'before'), this.#labels(after, 'after')]
    const found = { pairOf, pairs, isDiagonal, haveSameCodes: old.join() === next.join() }
    this.#pairs.set(key, found)
    return found
  }

  /**
   * Returns the clients that get other answers at a name, or at a name that its CNAME records lead
   * them to within `steps`. A chain ends at a name that the server block does not have.
   */
  #reach(key: string, steps: number): CellSet | undefined {
    const known = this.#reached[steps]!
    if (known.has(key)) return known.get(key)
    const before = this.#before.find(key)
    const after = this.#after.find(key)
    let clients: CellSet | undefined
    const types = new Set([...(before?.sets.keys() ?? []), ...(after?.sets.keys() ?? [])])
    for (const type of types) {
      clients = unite(clients, this.#compare(before?.sets.get(type), after?.sets.get(type)))
    }
    if (steps > 0) {
      clients = this.#follow(this.#before, 0, before, clients, steps - 1)
      clients = this.#follow(this.#after, 1, after, clients, steps - 1)
    }
    known.set(key, clients)
    return clients
  }

  /** Adds the clients that a CNAME leads to a name that changes for them. `side`: 0 before, 1 after. */
  #follow(
    names: ServedNames,
    side: 0 | 1,
    name: ServedName | undefined,
    clients: CellSet | undefined,
    steps: number,
  ): CellSet | undefined {
    const cname = name?.sets.get(RRType.CNAME)
    if (cname === undefined) return clients
    const { policy, tiers } = names.tiersOf(cname)
    let found = clients
    for (const [number, tier] of tiers.entries()) {
      for (const { rdataIndexes } of tier) {
        const [index] = rdataIndexes
        // A tier without data leads nowhere.
        if (index === undefined) continue
        const target = this.#reach(lowerNameKey(cname.rdata[index]!), steps)
        if (target === undefined) continue
        const led = Uint8Array.from(this.#cells, ({ classes }, i) => {
          return target[i] === 1 && names.tierOf(policy, classes[side]!) === number ? 1 : 0
        })
        found = unite(found, led)
      }
    }
    return found
  }

  /** Returns the names that a CNAME leads to and that change. */
  #changedTargets(sets: readonly (RRsetData | undefined)[]): string[] {
    const targets = new Map<string, Uint8Array>()
    for (const set of sets)
      for (const target of set?.rdata ?? []) targets.set(lowerNameKey(target), target)
    return [...targets]
      .filter(([target]) => this.#reach(target, ALIASES_MAX - 1) !== undefined)
      .map(([, target]) => printName(target))
  }

  #details(old: RRsetData | undefined, next: RRsetData | undefined): ChangeDetails {
    const before = this.#printTiers(old, 'before')
    const after = this.#printTiers(next, 'after')
    const labels = new Set([...before.keys(), ...after.keys()])
    const tiers = [...labels]
      .map((clients) => {
        return { clients, before: before.get(clients) ?? '', after: after.get(clients) ?? '' }
      })
      .filter((tier) => tier.before !== tier.after)
    const ttl = { before: old?.ttlSeconds ?? 0, after: next?.ttlSeconds ?? 0 }
    const hasTtl = old !== undefined && next !== undefined && ttl.before !== ttl.after
    return { ttl: hasTtl ? ttl : undefined, tiers }
  }

  #printTiers(set: RRsetData | undefined, side: 'before' | 'after'): Map<string, string> {
    if (set === undefined) return new Map()
    const tiers = (side === 'before' ? this.#before : this.#after).tiersOf(set)
    const labels = this.#labels(tiers.policy, side)
    return new Map(
      tiers.tiers.map((tier, i) => [labels[i]!, printAnswers(tier, tiers.answers[i]!, set)]),
    )
  }

  /** The clients of each tier. */
  #labels(policy: number | undefined, side: 'before' | 'after'): string[] {
    if (policy === undefined) return [ALL_CLIENTS]
    const { table } = side === 'before' ? this.#before : this.#after
    return [...table.policies[policy]!.map(printClients), OTHER_CLIENTS]
  }
}

/** One RRset before and after. */
interface Difference {
  readonly old: RRsetData | undefined
  readonly next: RRsetData | undefined
  /** The clients that get other records of the RRset itself. */
  readonly own: CellSet | undefined
  readonly clients: CellSet | undefined
}

function kindOf(old: RRsetData | undefined, next: RRsetData | undefined): ChangeKind {
  if (old === undefined) return 'added'
  return next === undefined ? 'removed' : 'changed'
}

const NO_CELLS: CellSet = new Uint8Array(0)

function unite(a: CellSet | undefined, b: CellSet | undefined): CellSet | undefined {
  if (a === undefined || b === undefined || a === b) return a ?? b
  return a.map((value, i) => value | b[i]!)
}

/** True if both are equal word by word, apart from the number of the policy. */
function isSameSet(old: RRsetData, next: RRsetData, before: SetTiers, after: SetTiers): boolean {
  if (old.rdata.length !== next.rdata.length) return false
  if ((before.policy === undefined) !== (after.policy === undefined)) return false
  if (!old.rdata.every((octets, i) => Buffer.compare(octets, next.rdata[i]!) === 0)) return false
  const [a, b] = [old.steering, next.steering]
  if (a === undefined || b === undefined) return a === b
  // Word 0 is the policy.
  return a.length === b.length && a.every((word, i) => i === 0 || word === b[i])
}
