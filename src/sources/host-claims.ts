import { type HostClaim, keyAbove } from '../dnsrecord/host-owners.ts'
import { ROOT_KEY } from '../dnsrecord/host-share.ts'

/** A record at a name. */
export interface HostMember extends HostClaim {
  readonly key: string
  /** False: its endpoints are at the name, but it does not claim the name. */
  readonly isClaim: boolean
}

interface Place {
  readonly members: Map<string, HostMember>
  /** Number of members by namespace. */
  readonly namespaces: Map<string, number>
  /** Names one label longer with members at or below them. */
  readonly below: Set<string>
}

const NO_MEMBERS: ReadonlyMap<string, HostMember> = new Map()

/** The tree of names that records claim. Names are `lowerNameKey`s. */
export class HostClaims {
  readonly #places = new Map<string, Place>()

  add(name: string, member: HostMember): void {
    const { members, namespaces } = this.#placeOf(name)
    const before = members.get(member.key)
    members.set(member.key, member)
    if (before === undefined) countOne(namespaces, member, 1)
  }

  /** `key`: of the record. */
  remove(name: string, key: string): void {
    let [at, place] = [name, this.#places.get(name)]
    const member = place?.members.get(key)
    if (member !== undefined) countOne(place!.namespaces, member, -1)
    place?.members.delete(key)
    while (place !== undefined && place.members.size === 0 && place.below.size === 0) {
      this.#places.delete(at)
      if (at === ROOT_KEY) return
      const above = keyAbove(at)
      place = this.#places.get(above)
      place?.below.delete(at)
      at = above
    }
  }

  *at(name: string): Generator<HostClaim> {
    for (const member of this.#membersAt(name)) if (member.isClaim) yield member
  }

  *below(name: string): Generator<HostClaim> {
    for (const member of this.#membersBelow(name)) if (member.isClaim) yield member
  }

  #membersAt(name: string): Iterable<HostMember> {
    return (this.#places.get(name)?.members ?? NO_MEMBERS).values()
  }

  *#membersBelow(name: string): Generator<HostMember> {
    for (const below of this.#places.get(name)?.below ?? []) {
      yield* this.#membersAt(below)
      yield* this.#membersBelow(below)
    }
  }

  /** The members that share a path with `name`: at it, below it and above it. */
  *around(name: string): Generator<HostMember> {
    yield* this.#membersAt(name)
    yield* this.#membersBelow(name)
    for (let at = name; at !== ROOT_KEY; ) {
      at = keyAbove(at)
      yield* this.#membersAt(at)
    }
  }

  /** True if a namespace other than that one has members at, below or above a name. */
  hasOthers(name: string, namespace: string): boolean {
    if (this.#hasOthersFrom(name, namespace)) return true
    for (let at = name; at !== ROOT_KEY; ) {
      at = keyAbove(at)
      if (this.#hasOthersAt(at, namespace)) return true
    }
    return false
  }

  #hasOthersFrom(name: string, namespace: string): boolean {
    if (this.#hasOthersAt(name, namespace)) return true
    for (const below of this.#places.get(name)?.below ?? []) {
      if (this.#hasOthersFrom(below, namespace)) return true
    }
    return false
  }

  #hasOthersAt(name: string, namespace: string): boolean {
    const { size = 0 } = this.#places.get(name)?.namespaces ?? {}
    return size > 1 || (size === 1 && !this.#places.get(name)!.namespaces.has(namespace))
  }

  #placeOf(name: string): Place {
    const known = this.#places.get(name)
    if (known !== undefined) return known
    const place: Place = { members: new Map(), namespaces: new Map(), below: new Set() }
    this.#places.set(name, place)
    if (name !== ROOT_KEY) this.#placeOf(keyAbove(name)).below.add(name)
    return place
  }
}

function countOne(namespaces: Map<string, number>, { namespace }: HostMember, step: 1 | -1): void {
  const count = (namespaces.get(namespace) ?? 0) + step
  if (count === 0) namespaces.delete(namespace)
  else namespaces.set(namespace, count)
}
