import { lowerName, printName, scanName } from '../../../dns/name/name.ts'
import {
  type LookupState,
  NEVER_ASKED,
  type StatusAddress,
  type StatusName,
} from '../../../egress/openshift/removal.ts'

/** A name that is looked up. */
export interface TrackedName {
  /** Lower-case wire form. */
  readonly name: Uint8Array
  /** Its addresses in each object that has it, by the key of the object. */
  readonly objects: Map<string, readonly StatusAddress[]>
  state: LookupState
}

/** The names of all objects: that of each `spec.name`, and those in the statuses. */
export class TrackedNames {
  readonly #names = new Map<string, TrackedName>()
  /** By the key of the object. */
  readonly #namesOf = new Map<string, ReadonlySet<string>>()

  get size(): number {
    return this.#names.size
  }

  /** `name`: in text form, or in wire form. */
  get(name: string | Uint8Array): TrackedName | undefined {
    return this.#names.get(typeof name === 'string' ? name : printName(name))
  }

  all(): Iterable<TrackedName> {
    return this.#names.values()
  }

  /**
   * Replaces the names of an object; none = the object does not exist. Returns those that no object
   * has any more. Invalid names are left out.
   */
  set(key: string, names: readonly StatusName[]): readonly TrackedName[] {
    const present = new Set<string>()
    for (const { dnsName, addresses } of names) {
      const tracked = this.#names.get(dnsName) ?? this.#add(dnsName)
      if (tracked === undefined) continue
      const known = present.has(dnsName) ? (tracked.objects.get(key) ?? []) : []
      tracked.objects.set(key, [...known, ...addresses])
      present.add(dnsName)
    }
    const forgotten: TrackedName[] = []
    for (const dnsName of this.#namesOf.get(key) ?? []) {
      const tracked = this.#names.get(dnsName)
      if (tracked === undefined || present.has(dnsName)) continue
      tracked.objects.delete(key)
      if (tracked.objects.size > 0) continue
      this.#names.delete(dnsName)
      forgotten.push(tracked)
    }
    if (present.size > 0) this.#namesOf.set(key, present)
    else this.#namesOf.delete(key)
    return forgotten
  }

  /** Names of the object. */
  of(key: string): Iterable<string> {
    return this.#namesOf.get(key) ?? []
  }

  #add(dnsName: string): TrackedName | undefined {
    const scanned = scanName(dnsName)
    if (scanned === undefined || printName(lowerName(scanned)) !== dnsName) return undefined
    const tracked = { name: scanned, objects: new Map(), state: NEVER_ASKED }
    this.#names.set(dnsName, tracked)
    return tracked
  }
}
