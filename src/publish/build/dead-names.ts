import type { EventActor } from '../../base/telemetry/event-log.ts'
import { RRType } from '../../dns/iana/types.ts'
import { CHAIN_MAX, isFollowed } from '../../health/down-targets.ts'
import { type EndpointDrain, isSameDrain } from '../../health/drain/drain.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { CnameIndex, CnameReader } from './cname-index.ts'
import { HOLDERS_MAX, type OwnerHolders } from './owner-holders.ts'
import type { Contribution } from './owner-set.ts'

/**
 * A name whose addresses and CNAMEs are all down or drained, whatever records they are from. Steps: the length of the
 * longest chain to an address. If it is more than CHAIN_MAX, as in a loop of CNAMEs, the name is not dead.
 */
interface DeadName {
  /** Infinity = not all its targets are down. */
  readonly downSteps: number
  readonly outSteps: number
  /** Of one of its targets; undefined = none is drained. */
  readonly drain: EndpointDrain | undefined
}

/** The states of names without a drain, by their steps: most dead names share one. */
const DOWN = Array.from({ length: CHAIN_MAX + 1 }, (_, steps): DeadName => {
  return { downSteps: steps, outSteps: steps, drain: undefined }
})

/** The records of a zone. `name`: `lowerNameKey`. */
interface DeadNamesOptions {
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly holders: Pick<OwnerHolders, 'of' | 'records'>
  /** True if targets of the record may be down or drained. */
  readonly isImpaired: (record: StoredRecord) => boolean
  /** True if the Corefile has an address for the name. */
  readonly isConfigured: (name: string) => boolean
}

/** Returns the endpoints of a record at a name. What its CNAMEs lead to does not count. */
type Read = (name: string, record: StoredRecord) => readonly Contribution[]

/** An owner whose endpoints changed, and why. */
interface Changed {
  /** `lowerNameKey` of the owner. */
  readonly key: string
  readonly actor: EventActor
}

/**
 * The names of a zone where nothing works. CNAMEs to them are out of service. While no name is dead, this stores
 * nothing. The first dead name builds the index of CNAMEs, which then stays.
 */
export class DeadNames {
  readonly #options: DeadNamesOptions
  readonly #served = new Map<string, DeadName>()
  /** Names that have changed since, until `commit`; undefined = it works. */
  readonly #changed = new Map<string, DeadName | undefined>()
  #showsServed = false
  #cnames: CnameIndex | undefined
  readonly #reader = new CnameReader()

  constructor(options: DeadNamesOptions) {
    this.#options = options
  }

  /** Notes a change of a record, once the holders have it. True: it leads to a dead name that another record has. */
  note(before: StoredRecord | undefined, after: StoredRecord | undefined): boolean {
    if (this.#cnames === undefined) return false
    if (before !== undefined) this.#cnames.drop(before)
    if (after === undefined) return false
    this.#cnames.add(after)
    if (this.#served.size === 0) return false
    return this.#cnames.targetsOf(after).some((target) => this.#served.has(target))
  }

  /** Adds the targets of CNAMEs that lead to dead names. Returns the same list if there are none. */
  resolve(contributions: readonly Contribution[]): readonly Contribution[] {
    if (this.isEmpty) return contributions
    const resolved = contributions.map((one) => this.#resolve(one))
    return resolved.every((one, i) => one === contributions[i]) ? contributions : resolved
  }

  /**
   * Finds the names that died or recovered because endpoints of `changed` did. Returns the owners of the CNAMEs to such
   * names, with the actor of the change.
   */
  *settle(changed: Iterable<Changed>, read: Read): Generator<void, Map<string, EventActor>> {
    const affected = new Map<string, EventActor>()
    const queue = new Map<string, EventActor>()
    for (const { key, actor } of changed) queue.set(key, actor)
    // This ends: in a loop, the steps grow until they pass CHAIN_MAX.
    for (const [name, actor] of queue) {
      yield
      queue.delete(name)
      const now = this.#find(name, read)
      if (isSame(now, this.#get(name))) continue
      this.#changed.set(name, now)
      for (const owner of this.#leadingTo(name)) {
        affected.set(owner, actor)
        queue.set(owner, actor)
      }
    }
    return affected
  }

  /** Runs `build` as if nothing had changed since `commit`. */
  asServed<T>(build: () => T): T {
    this.#showsServed = true
    const built = build()
    this.#showsServed = false
    return built
  }

  /** Call it when the RRsets of all owners that `settle` returned are built. */
  commit(): void {
    for (const [name, state] of this.#changed) {
      if (state === undefined) this.#served.delete(name)
      else this.#served.set(name, state)
    }
    this.#changed.clear()
    this.#reader.forget()
  }

  /** True if a CNAME of a record that has `name` leads to it: in a fail-over, no client gets there. */
  isBehindCname(name: string): boolean {
    const holders = this.#options.holders.of(name)
    return holders.some((record) => this.#reader.ownersTo(name, record).length > 0)
  }

  /** Returns the keys of the records with CNAMEs to dead names that only others have. */
  cnameKeys(): Set<string> {
    const keys = new Set<string>()
    for (const name of this.#served.keys()) {
      for (const { key } of this.#cnames?.of(name) ?? []) keys.add(key)
    }
    return keys
  }

  /** True if no name is dead. */
  get isEmpty(): boolean {
    return this.#served.size === 0 && (this.#showsServed || this.#changed.size === 0)
  }

  #get(name: string): DeadName | undefined {
    const isServed = this.#showsServed || !this.#changed.has(name)
    return isServed ? this.#served.get(name) : this.#changed.get(name)
  }

  #resolve(one: Contribution): Contribution {
    const { endpoint } = one
    if (endpoint.type !== RRType.CNAME) return one
    let { down, drained } = one
    for (const [index, target] of endpoint.rdata.entries()) {
      const dead = this.#get(lowerNameKey(target))
      if (dead === undefined || down.has(index)) continue
      if (dead.downSteps < Infinity) down = new Set(down).add(index)
      else if (drained?.has(index) !== true) drained = new Map(drained).set(index, dead.drain!)
    }
    return down === one.down && drained === one.drained ? one : { ...one, down, drained }
  }

  /** Returns the state of a name after the states of the names that its CNAMEs lead to; undefined = it works. */
  #find(name: string, read: Read): DeadName | undefined {
    const { holders, isConfigured, isImpaired } = this.#options
    const all = holders.of(name)
    if (isConfigured(name)) return undefined
    let [downSteps, outSteps] = [0, 0]
    let drain: EndpointDrain | undefined
    for (let i = 0; i < all.length && i < HOLDERS_MAX; i++) {
      if (this.isEmpty && !isImpaired(all[i]!)) return undefined
      for (const one of read(name, all[i]!)) {
        if (!isFollowed(one.endpoint.type)) continue
        for (const index of one.endpoint.rdata.keys()) {
          const target = this.#targetOf(one, index)
          if (target.outSteps > CHAIN_MAX) return undefined
          downSteps = Math.max(downSteps, target.downSteps)
          outSteps = Math.max(outSteps, target.outSteps)
          drain ??= target.drain
        }
      }
    }
    if (outSteps === 0) return undefined
    if (downSteps === outSteps && drain === undefined) return DOWN[outSteps]
    return { downSteps: downSteps > CHAIN_MAX ? Infinity : downSteps, outSteps, drain }
  }

  /** Returns the state of a target, as if it were the only one of its name; Infinity = it works. */
  #targetOf({ endpoint, down, drained }: Contribution, index: number): DeadName {
    const isCname = endpoint.type === RRType.CNAME
    const behind = isCname ? this.#get(lowerNameKey(endpoint.rdata[index]!)) : undefined
    const own = drained?.get(index)
    const isDown = down.has(index)
    const downSteps = isDown ? 1 : 1 + (behind?.downSteps ?? Infinity)
    const outSteps = isDown || own !== undefined ? 1 : 1 + (behind?.outSteps ?? Infinity)
    return { downSteps, outSteps, drain: own ?? behind?.drain }
  }

  /** Returns the owners of all CNAMEs to a name. */
  *#leadingTo(name: string): Generator<string> {
    const { apex, holders } = this.#options
    this.#cnames ??= new CnameIndex(apex, holders.records())
    for (const record of this.#cnames.of(name)) {
      yield* this.#reader.ownersTo(name, record)
    }
    for (const record of holders.of(name)) yield* this.#reader.ownersTo(name, record)
  }
}

function isSame(one: DeadName | undefined, other: DeadName | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  const isSameLength = one.downSteps === other.downSteps && one.outSteps === other.outSteps
  if (one.drain === undefined || other.drain === undefined) {
    return isSameLength && one.drain === other.drain
  }
  return isSameLength && isSameDrain(one.drain, other.drain)
}
