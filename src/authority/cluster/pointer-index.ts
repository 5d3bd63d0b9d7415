import { latin1 } from './rrset-collector.ts'
import type { Pointer } from './service-records.ts'

/** The names that each address leads to, of all Services: Services can select the same Pod. */
export class PointerIndex {
  /** By octets of the address, as latin1; see `entryOf`. Most addresses have one name. */
  readonly #entries = new Map<string, string | readonly string[]>()

  add(pointer: Pointer): void {
    const key = latin1(pointer.address.bytes)
    const known = this.#entries.get(key)
    const entry = entryOf(pointer)
    if (known === undefined) this.#entries.set(key, entry)
    else this.#entries.set(key, [...(typeof known === 'string' ? [known] : known), entry])
  }

  remove(pointer: Pointer): void {
    const key = latin1(pointer.address.bytes)
    const known = this.#entries.get(key)
    const entries = typeof known === 'string' ? [known] : (known ?? [])
    const at = entries.indexOf(entryOf(pointer))
    if (at === -1) return
    const left = entries.toSpliced(at, 1)
    if (left.length === 0) this.#entries.delete(key)
    else this.#entries.set(key, left.length === 1 ? left[0]! : left)
  }

  /** Returns the targets of the PTR records: Services if it is one of theirs, otherwise endpoints. */
  targets(address: Uint8Array): readonly Uint8Array[] {
    const known = this.#entries.get(latin1(address)) ?? []
    const entries = typeof known === 'string' ? [known] : known
    const services = entries.filter((entry) => entry.startsWith(SERVICE))
    const chosen = services.length > 0 ? services : entries
    return chosen.map((entry) => Buffer.from(entry.slice(1), 'latin1'))
  }
}

const SERVICE = 's'
const ENDPOINT = 'e'

/** The kind of the target, and its wire form as latin1. */
function entryOf({ target, isService }: Pointer): string {
  return `${isService ? SERVICE : ENDPOINT}${latin1(target)}`
}
