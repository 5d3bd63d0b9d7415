import { InputError } from '../../base/errors.ts'
import { canonicalSet } from '../../dns/dnssec/canonical.ts'
import { RRType } from '../../dns/iana/types.ts'
import {
  type PossibleAnswers,
  possibleAnswers,
  signingProblem,
} from '../../steering/possible-answers.ts'

/** An RRset that is in an image, or will be. */
export interface SetData {
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: readonly Uint8Array[]
  readonly steering?: Uint32Array | undefined
  /** Offset in the arena; absent = it is not there yet. */
  readonly place?: number
}

/** One of the answers that clients may get from an RRset. */
export interface SetAnswer {
  readonly ttlSeconds: number
  /** Empty = the answer has no records. */
  readonly rdataIndexes: readonly number[]
  readonly rdata: readonly Uint8Array[]
}

/** All answers of an RRset, by number. */
interface SetAnswers {
  /** False: the only answer is the whole set. */
  readonly isNumbered: boolean
  readonly answers: readonly SetAnswer[]
  /** Number of the answer for transfers. */
  readonly default: number
}

/**
 * Returns the answers of an RRset. NSEC and NSEC3 have one for each record (see signature-directory.ts).
 * @throws InputError if clients may get more answers than can be signed.
 */
export function answersOf({ type, ttlSeconds, rdata, steering }: SetData): SetAnswers {
  if ((type === RRType.NSEC || type === RRType.NSEC3) && rdata.length > 1) {
    const answers = rdata.map((one, i) => ({ ttlSeconds, rdataIndexes: [i], rdata: [one] }))
    return { isNumbered: true, answers, default: 0 }
  }
  const possible = steering === undefined ? undefined : possibleAnswers(steering)
  if (steering === undefined || isWhole(possible, { ttlSeconds, rdata })) {
    const records = isSingleton(type) ? rdata.slice(0, 1) : rdata
    const answer = { ttlSeconds, rdataIndexes: [], rdata: records }
    return { isNumbered: false, answers: [answer], default: 0 }
  }
  if (possible === undefined) throw new InputError(undefined, signingProblem(steering) ?? '')
  const answers = possible.answers.map((one) => {
    const rdataIndexes = isSingleton(type) ? one.rdataIndexes.slice(0, 1) : one.rdataIndexes
    const records = rdataIndexes.map((index) => rdata[index]!)
    return { ttlSeconds: one.ttlSeconds, rdataIndexes, rdata: records }
  })
  return { isNumbered: true, answers, default: possible.default }
}

/** True if the only answer is the whole set: its steering only counts it, or notes something in replies. */
function isWhole(
  possible: PossibleAnswers | undefined,
  { ttlSeconds, rdata }: Pick<SetData, 'ttlSeconds' | 'rdata'>,
): boolean {
  const [only, ...others] = possible?.answers ?? []
  if (only === undefined || others.length > 0) return false
  return only.ttlSeconds === ttlSeconds && only.rdataIndexes.length === rdata.length
}

/** True if answers contain one record of the RRset, even if it has more (see `RRsetAdder`). */
function isSingleton(type: number): boolean {
  return type === RRType.CNAME || type === RRType.DNAME
}

/** Returns a key that two answers of one name and type share if and only if they can share a signature. */
export function contentKey(type: number, { ttlSeconds, rdata }: SetAnswer): string {
  let key = `${ttlSeconds}:`
  for (const one of canonicalSet(type, rdata)) {
    // A copy: Buffer need not convert shared memory to text.
    key += `${one.length}:${Buffer.from(one).toString('latin1')}`
  }
  return key
}
