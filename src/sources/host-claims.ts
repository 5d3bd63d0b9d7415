import { type HostClaim, keyAbove } from '../records/host-owners.ts'
import { ROOT_KEY } from '../records/host-share.ts'

/** A record at a name. */
export interface HostMember extends HostClaim {
  readonly key: string
  /** The zone of the record. */
  readonly apex: string
  /** False: its endpoints are at the name, but it does not claim the name. */
  readonly isClaim: boolean
}

/** Number of members by namespace. */
type Counts = Map<string, number>

interface Place {
  readonly members: Map<string, HostMember>
  readonly namespaces: Counts
  /** Names one label longer with members at or below them; undefined = none yet. */
  below: Set<string> | undefined
  /** Counts the members below the name, not at it; undefined = none yet. */
  namespacesBelow: Counts | undefined
}

const NO_MEMBERS: ReadonlyMap<string, HostMember> = new Map()

/** The tree of names that records claim. Names are `lowerNameKey`s. */
export class HostClaims {
  readonly #places = new Map<string, Place>()
  /** Number of members by their zone. */
  readonly #apexes: Counts = new Map()
  /** Number of editable claims by name. */
  readonly #editable: Counts = new Map()

  add(name: string, member: HostMember): void {
    if (this.#places.get(name)?.members.has(member.key)) this.remove(name, member.key)
    const { members, namespaces } = this.#placeOf(name)
    members.set(member.key, member)
    countOne(namespaces, member.namespace, 1)
    this.#count(name, member, 1)
  }

  /** `key`: of the record. */
  remove(name: string, key: string): void {
    let [at, place] = [name, this.#places.get(name)]
    const member = place?.members.get(key)
    if (place === undefined || member === undefined) return
    place.members.delete(key)
    countOne(place.namespaces, member.namespace, -1)
    this.#count(name, member, -1)
    while (place !== undefined && place.members.size === 0 && !place.below?.size) {
      this.#places.delete(at)
      if (at === ROOT_KEY) return
      const above = keyAbove(at)
      place = this.#places.get(above)
      place?.below?.delete(at)
      at = above
    }
  }

  *at(name: string): Generator<HostClaim> {
    for (const member of this.membersAt(name)) if (member.isClaim) yield member
  }

  *below(name: string): Generator<HostClaim> {
    for (const member of this.#membersBelow(name)) if (member.isClaim) yield member
  }

  membersAt(name: string): Iterable<HostMember> {
    return (this.#places.get(name)?.members ?? NO_MEMBERS).values()
  }

  /** The members at a name and below it. */
  *membersFrom(name: string): Generator<HostMember> {
    yield* this.membersAt(name)
    yield* this.#membersBelow(name)
  }

  *#membersBelow(name: string): Generator<HostMember> {
    for (const below of this.namesBelow(name)) yield* this.membersFrom(below)
  }

  /** The members above a name, not at it. */
  *membersAbove(name: string): Generator<HostMember> {
    for (const at of keysAbove(name)) yield* this.membersAt(at)
  }

  /** The names one label longer with members at or below them. */
  namesBelow(name: string): Iterable<string> {
    return this.#places.get(name)?.below ?? []
  }

  /** The zones of members, if they are at `name` or above it. */
  *apexesOf(name: string): Generator<string> {
    if (this.#apexes.has(name)) yield name
    for (const at of keysAbove(name)) if (this.#apexes.has(at)) yield at
  }

  /** The names with an editable claim. */
  get editableNames(): Iterable<string> {
    return this.#editable.keys()
  }

  /** The members at `name` and below it that have members of another namespace at, below or above their names. */
  *contestedMembers(name: string = ROOT_KEY): Generator<HostMember> {
    if (!this.isContested(name)) return
    yield* this.membersAt(name)
    for (const below of this.namesBelow(name)) yield* this.contestedMembers(below)
  }

  /** True if members of two namespaces are at, below or above a name. */
  isContested(name: string): boolean {
    let first: string | undefined
    const isOther = (counts: Counts): boolean => {
      first ??= counts.keys().next().value
      return hasOthers(counts, first)
    }
    return this.#someAround(name, isOther)
  }

  /** True if a namespace except `namespace` has members at, below or above a name. */
  hasOthers(name: string, namespace: string): boolean {
    return this.#someAround(name, (counts) => hasOthers(counts, namespace))
  }

  #someAround(name: string, isSelected: (counts: Counts) => boolean): boolean {
    const place = this.#places.get(name)
    if (place !== undefined && isSelected(place.namespaces)) return true
    if (place?.namespacesBelow !== undefined && isSelected(place.namespacesBelow)) return true
    for (let at = name; at !== ROOT_KEY; ) {
      at = keyAbove(at)
      const above = this.#places.get(at)
      if (above !== undefined && isSelected(above.namespaces)) return true
    }
    return false
  }

  #count(name: string, { namespace, apex, isEditable }: HostMember, step: 1 | -1): void {
    countOne(this.#apexes, apex, step)
    if (isEditable === true) countOne(this.#editable, name, step)
    for (let at = name; at !== ROOT_KEY; ) {
      at = keyAbove(at)
      const place = this.#places.get(at)!
      place.namespacesBelow ??= new Map()
      countOne(place.namespacesBelow, namespace, step)
    }
  }

  #placeOf(name: string): Place {
    const known = this.#places.get(name)
    if (known !== undefined) return known
    const place: Place = {
      ...{ members: new Map(), namespaces: new Map() },
      ...{ below: undefined, namespacesBelow: undefined },
    }
    this.#places.set(name, place)
    if (name === ROOT_KEY) return place
    const above = this.#placeOf(keyAbove(name))
    above.below ??= new Set()
    above.below.add(name)
    return place
  }
}

function countOne(counts: Counts, key: string, step: 1 | -1): void {
  const count = (counts.get(key) ?? 0) + step
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}

/** `namespace`: undefined = there is no member so far. */
function hasOthers(counts: Counts, namespace: string | undefined): boolean {
  return counts.size > 1 || (counts.size === 1 && !counts.has(namespace!))
}

function* keysAbove(name: string): Generator<string> {
  for (let at = name; at !== ROOT_KEY; ) {
    at = keyAbove(at)
    yield at
  }
}
