import { printLatin1 } from '../../../base/latin1.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import { printType } from '../../../dns/iana/types.ts'
import { printName } from '../../../dns/name/name.ts'
import { signingProblem } from '../../../steering/possible-answers.ts'

/** The RRsets of a signed zone that are not served as their records are: they have too many possible answers. */
export class RefusedSets {
  readonly #log: Logger
  /** By type and owner: the reason. */
  readonly #reasons = new Map<string, string>()

  constructor(log: Logger) {
    this.#log = log
  }

  get reasons(): Iterable<string> {
    return this.#reasons.values()
  }

  has(owner: Uint8Array, type: number): boolean {
    return this.#reasons.size > 0 && this.#reasons.has(keyOf(owner, type))
  }

  /** Returns false for an RRset that cannot be signed. `steering`: undefined = the set has one answer. */
  accepts(owner: Uint8Array, type: number, steering: Uint32Array | undefined): boolean {
    const problem = steering && signingProblem(steering)
    if (problem === undefined) {
      this.forget(owner, type)
      return true
    }
    const reason = `${printName(owner)} ${printType(type)} ${problem}; its last signed version is served`
    const key = keyOf(owner, type)
    if (this.#reasons.get(key) !== reason) this.#log.error(reason, 'set-not-signed')
    this.#reasons.set(key, reason)
    return false
  }

  /** Notes that no record has the RRset any more. */
  forget(owner: Uint8Array, type: number): void {
    if (this.#reasons.size > 0) this.#reasons.delete(keyOf(owner, type))
  }
}

function keyOf(owner: Uint8Array, type: number): string {
  return `${type} ${printLatin1(owner)}`
}
