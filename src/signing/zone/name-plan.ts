import { assert } from '../../base/assert.ts'
import { proofBy, type SignedType } from '../../zone/image/signature-directory.ts'
import { keyOwner } from './canonical-key.ts'
import type { DenialPlan } from './denial-plan.ts'
import { isSignedSet, kindOf, typeLists } from './name-types.ts'
import { answersOf, contentKey, type SetAnswer, type SetData } from './set-answers.ts'
import type { SignatureRequest } from './signature-batch.ts'
import type { OldName, SignatureSource, Signers } from './signature-source.ts'
import type { ZoneView } from './zone-view.ts'

/** A signature that is missing. */
export interface MissingSignature extends SignatureRequest {
  /** Its index in `NamePlan.signatures`. */
  readonly index: number
}

/** What a name gets: its proof of absence, and the signatures of its RRsets. */
export interface NamePlan {
  readonly key: string
  readonly owner: Uint8Array
  /** Undefined = the name has none. */
  readonly denial: SetData | undefined
  /** RRSIG rdata; undefined = to be made. Empty = nothing of the name is signed. */
  readonly signatures: (Uint8Array | undefined)[]
  readonly missing: readonly MissingSignature[]
  /** Of the signed RRsets, ascending by type. */
  readonly types: readonly SignedType[]
  /** The lowest and the greatest TTL of the signed RRsets. */
  readonly ttlSeconds: number
  readonly ttlSecondsMax: number
}

/** Plans one name. */
export function planName(
  view: ZoneView,
  denials: DenialPlan,
  key: string,
  source: SignatureSource,
): NamePlan {
  const owner = keyOwner(key, view.apex)
  const kind = kindOf(view, owner, view.find(owner))
  const denial = denials.denialOf(view, key)
  const sets: SetData[] = kind.sets.filter(({ type }) => isSignedSet(type, kind))
  if (denial !== undefined) sets.push(denial)
  sets.sort((a, b) => a.type - b.type)
  const draft = new NameDraft(key, owner, source)
  const proofs = denials.type === 0 ? [] : typeLists(kind.sets).missing
  for (const set of sets) draft.add(set, Math.max(0, proofs.indexOf(set.type)))
  return draft.finish(denial)
}

/** Collects the signatures of one name. */
class NameDraft {
  readonly #key: string
  readonly #owner: Uint8Array
  readonly #source: SignatureSource
  readonly #old: OldName
  readonly #signatures: (Uint8Array | undefined)[] = []
  readonly #missing: MissingSignature[] = []
  readonly #types: SignedType[] = []
  #ttlSeconds = 0x7fffffff
  #ttlSecondsMax = 0

  constructor(key: string, owner: Uint8Array, source: SignatureSource) {
    this.#key = key
    this.#owner = owner
    this.#source = source
    this.#old = source.oldName(owner)
  }

  /** Adds an RRset. `proof`: number of the NSEC or NSEC3 answer that proves its answers without records. */
  add(set: SetData, proof: number): void {
    const { answers, isNumbered, default: usual } = answersOf(set)
    const signers = this.#source.signersOf(set.type, this.#key === '')
    const find = this.#old.finder(set, this.#source.buffer)
    const known = new Map<string | undefined, number>()
    const places = answers.map((answer, i) => {
      if (answer.rdata.length === 0) return proofBy(proof)
      const content = isNumbered ? contentKey(set.type, answer) : undefined
      const place =
        known.get(content) ?? this.#sign(set.type, answer, find(answer, i, content), signers)
      known.set(content, place)
      return place
    })
    const answer = answers[usual]
    assert(answer !== undefined, 'a set has a default answer')
    this.#ttlSeconds = Math.min(this.#ttlSeconds, set.ttlSeconds)
    for (const one of answers) this.#ttlSecondsMax = Math.max(this.#ttlSecondsMax, one.ttlSeconds)
    this.#types.push({
      type: set.type,
      signaturesPerAnswer: signers.keys.length,
      default: {
        signature: places[usual]!,
        ttlSeconds: answer.ttlSeconds,
        rdataIndexes: answer.rdataIndexes,
      },
      answers: isNumbered ? places : [],
    })
  }

  /** Returns the index of the first signature of an answer. */
  #sign(
    type: number,
    { ttlSeconds, rdata }: SetAnswer,
    candidates: readonly Uint8Array[],
    signers: Signers,
  ): number {
    const first = this.#signatures.length
    const set = { owner: this.#owner, type, ttlSeconds, rdata }
    const reused = this.#source.select(candidates, signers, ttlSeconds)
    for (const [i, key] of signers.keys.entries()) {
      if (reused[i] === undefined) {
        const times = this.#source.timesOf(this.#key, type)
        this.#missing.push({ index: this.#signatures.length, set, key, times })
      }
      this.#signatures.push(reused[i])
    }
    return first
  }

  finish(denial: SetData | undefined): NamePlan {
    return {
      key: this.#key,
      owner: this.#owner,
      denial,
      signatures: this.#signatures,
      missing: this.#missing,
      types: this.#types,
      ttlSeconds: this.#ttlSeconds,
      ttlSecondsMax: this.#ttlSecondsMax,
    }
  }
}
