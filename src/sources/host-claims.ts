import { type ClaimTree, type HostClaim, keyAbove } from '../dnsrecord/host-owners.ts'
import { ROOT_KEY } from '../dnsrecord/host-share.ts'

/** A record at a name. */
export interface HostMember extends HostClaim {
  readonly key: string
  /** False: its endpoints are at the name, but it does not claim the name. */
  readonly isClaim: boolean
}

interface Place {
  readonly members: Map<string, HostMember>
  /** Names one label longer with members at or below them. */
  readonly below: Set<string>
}

const NO_MEMBERS: ReadonlyMap<string, HostMember> = new Map()

/** The tree of names that records claim. Names are `lowerNameKey`s. */
export class HostClaims implements ClaimTree {
  readonly #places = new Map<string, Place>()

  add(name: string, member: HostMember): void {
    this.#placeOf(name).members.set(member.key, member)
  }

  /** `key`: of the record. */
  remove(name: string, key: string): void {
    this.#places.get(name)?.members.delete(key)
    let [at, place] = [name, this.#places.get(name)]
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

  #placeOf(name: string): Place {
    const known = this.#places.get(name)
    if (known !== undefined) return known
    const place: Place = { members: new Map(), below: new Set() }
    this.#places.set(name, place)
    if (name !== ROOT_KEY) this.#placeOf(keyAbove(name)).below.add(name)
    return place
  }
}
