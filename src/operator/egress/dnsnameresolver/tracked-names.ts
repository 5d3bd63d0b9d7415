import { lowerName, printName, scanName } from '../../../dns/name/name.ts'
import {
  type LookupState,
  NEVER_ASKED,
  type StatusAddress,
  type StatusName,
} from '../../../egress/policies/openshift/removal.ts'
import { scanSelector } from '../../../egress/selectors/scan-selector.ts'

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
  /** By the text form: lower case, with the final dot. */
  readonly #names = new Map<string, TrackedName>()
  /** By the key of the object. */
  readonly #namesOf = new Map<string, ReadonlySet<string>>()

  get size(): number {
    return this.#names.size
  }

  /** `name`: in text form as an object has it, or in lower-case wire form. */
  get(name: string | Uint8Array): TrackedName | undefined {
    const wire = typeof name === 'string' ? wireOf(name) : name
    return wire && this.#names.get(printName(wire))
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
    for (const { dnsName: written, addresses } of names) {
      const wire = wireOf(written)
      if (wire === undefined) continue
      const dnsName = printName(wire)
      const tracked = this.#names.get(dnsName) ?? this.#add(dnsName, wire)
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

  /** Names of the object, in lower case. */
  of(key: string): Iterable<string> {
    return this.#namesOf.get(key) ?? []
  }

  #add(dnsName: string, name: Uint8Array): TrackedName {
    const tracked = { name, objects: new Map(), state: NEVER_ASKED }
    this.#names.set(dnsName, tracked)
    return tracked
  }
}

/** Lower-case wire form of a name that the directive `egressfirewall` accepts too; a wildcard has its `*`. */
function wireOf(dnsName: string): Uint8Array | undefined {
  if (typeof scanSelector(dnsName, 'openshift') === 'string') return undefined
  const name = scanName(dnsName)
  return name && lowerName(name)
}
