import { printLatin1 } from '../../../base/latin1.ts'
import type { Logger } from '../../../base/telemetry/log.ts'
import { printType, RRType } from '../../../dns/iana/types.ts'
import { printName } from '../../../dns/name/name.ts'
import { isWildcard } from '../../../records/validate/names.ts'
import { ANSWERS_SIGNED_MAX } from '../../../steering/answer-numbers.ts'
import { possibleAnswers, signingProblem } from '../../../steering/possible-answers.ts'

/** Such a record is a zone cut whose names exist: BIND refuses it, too. */
const WILDCARD_NS = 'of a wildcard cannot be signed: use NS records of names without `*`'

/**
 * Of all types of a name: its signatures are one RRset, also while several keys sign, and that has at most 65535
 * records.
 */
const NAME_ANSWERS_MAX = 4 * ANSWERS_SIGNED_MAX

/**
 * The RRsets of a signed zone that are not served as their records are: they have too many possible answers, or are NS
 * of a wildcard.
 */
export class RefusedSets {
  readonly #log: Logger
  /** By type and owner: the reason. */
  readonly #reasons = new Map<string, string>()
  /** Possible answers of the steered RRsets that are accepted, by owner and type. */
  readonly #answers = new Map<string, Map<number, number>>()

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
    const count = steering === undefined ? 0 : possibleAnswers(steering)?.answers.length
    const problem = this.#problemOf(owner, type, count, steering)
    if (problem === undefined) {
      this.forget(owner, type)
      if (count !== undefined && count > 0) this.#countsOf(owner).set(type, count)
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
    const name = printLatin1(owner)
    const counts = this.#answers.get(name)
    if (counts?.delete(type) === true && counts.size === 0) this.#answers.delete(name)
  }

  #countsOf(owner: Uint8Array): Map<number, number> {
    const name = printLatin1(owner)
    const counts = this.#answers.get(name) ?? new Map<number, number>()
    this.#answers.set(name, counts)
    return counts
  }

  #problemOf(
    owner: Uint8Array,
    type: number,
    count: number | undefined,
    steering: Uint32Array | undefined,
  ): string | undefined {
    if (type === RRType.NS && isWildcard(owner)) return WILDCARD_NS
    return count === undefined ? signingProblem(steering!) : this.#problemOfName(owner, type, count)
  }

  /** Returns why a name cannot have an RRset with `count` possible answers; undefined = it can. */
  #problemOfName(owner: Uint8Array, type: number, count: number): string | undefined {
    if (count === 0) return undefined
    let sum = count
    for (const [other, answers] of this.#answers.get(printLatin1(owner)) ?? []) {
      if (other !== type) sum += answers
    }
    if (sum <= NAME_ANSWERS_MAX) return undefined
    return (
      `has ${count} possible answers, and all types of the name together more than ${NAME_ANSWERS_MAX}, and each needs ` +
      'a signature: use fewer endpoints, or other `answers`'
    )
  }
}

function keyOf(owner: Uint8Array, type: number): string {
  return `${type} ${printLatin1(owner)}`
}
