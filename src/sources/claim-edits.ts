import {
  belongsToApexOwner,
  compareClaims,
  findOwner,
  type HostOwner,
  isAtOrBelow,
} from '../records/host-owners.ts'
import type { HostClaims, HostMember } from './host-claims.ts'

/** A change of the member that a record has at a name. */
interface ClaimEdit {
  /** Of the record. */
  readonly key: string
  readonly before: HostMember | undefined
  readonly after: HostMember | undefined
}

/** What determines the owners of the names at, below and above a name. */
interface Standing {
  readonly isContested: boolean
  /** The owner of the name by zone; undefined = not searched, because one namespace has the names around it. */
  readonly owners: ReadonlyMap<string, HostOwner | undefined> | undefined
}

/** Changes of claims that are applied together. */
export class ClaimEdits {
  readonly #claims: HostClaims
  readonly #byName = new Map<string, ClaimEdit[]>()

  constructor(claims: HostClaims) {
    this.#claims = claims
  }

  put(name: string, edit: ClaimEdit): void {
    const known = this.#byName.get(name)
    if (known !== undefined) known.push(edit)
    // A member that is no claim does not change the owner of a name.
    else if (edit.before?.isClaim || edit.after?.isClaim) this.#byName.set(name, [edit])
    else this.#applyOne(name, edit)
  }

  /** Returns the keys of the records whose names may have another owner now. */
  apply(): ReadonlySet<string> {
    const before = Array.from(this.#byName.keys(), (name) => this.#standingOf(name))
    for (const [name, edits] of this.#byName) for (const edit of edits) this.#applyOne(name, edit)
    const keys = new Set<string>()
    for (const [i, name] of [...this.#byName.keys()].entries()) {
      for (const { key } of this.#affected(name, before[i]!)) keys.add(key)
    }
    return keys
  }

  #applyOne(name: string, { key, after }: ClaimEdit): void {
    if (after === undefined) this.#claims.remove(name, key)
    else this.#claims.add(name, after)
  }

  #standingOf(name: string): Standing {
    const isContested = this.#claims.isContested(name)
    const willBe = this.#byName.get(name)!.some(({ after }) => {
      return after !== undefined && this.#claims.hasOthers(name, after.namespace)
    })
    if (!isContested && !willBe) return { isContested, owners: undefined }
    const apexes = [...this.#claims.apexesOf(name)]
    return { isContested, owners: new Map(apexes.map((apex) => [apex, this.#ownerOf(name, apex)])) }
  }

  #ownerOf(name: string, apex: string): HostOwner | undefined {
    return findOwner(name, apex, (at) => this.#claims.at(at))
  }

  /** Returns the members that the changes of a name may concern. `before`: its standing before them. */
  *#affected(name: string, before: Standing): Generator<HostMember> {
    const claims = this.#claims
    if (!before.isContested && !claims.isContested(name)) {
      // A record of the zone kdrnt is served only if its namespace has a record of the host.
      yield* claims.membersAt(name)
      return
    }
    // Their records may also have names at or below this one, and a delegation covers the names below it.
    yield* claims.membersAbove(name)
    for (const apex of claims.apexesOf(name)) {
      const [was, is] = [before.owners?.get(apex), this.#ownerOf(name, apex)]
      if (before.owners?.has(apex) === true && isSameOwner(was, is)) continue
      if (name === apex) yield* this.#affectedByApex(apex, was, is)
      else for (const one of claims.membersFrom(name)) if (one.apex === apex) yield one
    }
  }

  /** Returns the members that the owner of the apex decides about. */
  *#affectedByApex(
    apex: string,
    was: HostOwner | undefined,
    is: HostOwner | undefined,
  ): Generator<HostMember> {
    const claims = this.#claims
    yield* claims.membersAt(apex)
    for (const below of claims.namesBelow(apex)) {
      if (belongsToApexOwner(below)) yield* claims.membersFrom(below)
    }
    // The age of editable claims counts for the namespace that owns the apex.
    if (was?.claim.namespace === is?.claim.namespace) return
    for (const name of claims.editableNames) {
      if (!isAtOrBelow(name, apex) || !claims.isContested(name)) continue
      yield* claims.membersAbove(name)
      yield* claims.membersFrom(name)
    }
  }
}

function isSameOwner(a: HostOwner | undefined, b: HostOwner | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return a.host === b.host && compareClaims(a.claim, b.claim) === 0
}
