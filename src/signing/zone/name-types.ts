import { RRType } from '../../dns/iana/types.ts'
import { hasEmptyOutcome } from '../../steering/decode.ts'
import {
  FLAG_APEX,
  FLAG_CHILDREN,
  FLAG_CUT,
  FLAG_DECLARED,
  FLAG_HASHED,
} from '../../zone/image/layout.ts'
import { answersOf } from './set-answers.ts'
import type { ImageSet, ZoneView } from './zone-view.ts'

/** The types that a signer makes, and removes, wherever they are in the zone. */
const MADE: ReadonlySet<number> = new Set([RRType.RRSIG, RRType.NSEC, RRType.NSEC3])

/** What a name is in the zone. */
export interface OwnerKind {
  /** Below a zone cut or a DNAME, or an owner of NSEC3 only: nothing of it is signed or proved. */
  readonly isOutside: boolean
  readonly isCut: boolean
  readonly isApex: boolean
  /** Exists only because names below it do. */
  readonly isEmptyNonTerminal: boolean
  /** Its authoritative RRsets without those that prove absence and RRSIG; of a cut: NS and DS. */
  readonly sets: readonly ImageSet[]
  /** Exists without RRsets, whether or not names below it do. */
  readonly isDeclared: boolean
}

const NOTHING: OwnerKind = {
  isOutside: true,
  isCut: false,
  isApex: false,
  isEmptyNonTerminal: false,
  isDeclared: false,
  sets: [],
}

/** Returns what the name with this body is in the zone. */
export function kindOf(view: ZoneView, owner: Uint8Array, body: number): OwnerKind {
  const flags = view.flags(body)
  if (body === 0 || (flags & FLAG_HASHED) !== 0 || view.isHidden(owner)) return NOTHING
  const isCut = (flags & FLAG_CUT) !== 0
  const sets = view.sets(body).filter(({ type }) => {
    return !MADE.has(type) && (!isCut || type === RRType.NS || type === RRType.DS)
  })
  const isEmpty = sets.length === 0
  const hasChildren = (flags & FLAG_CHILDREN) !== 0
  return {
    isOutside: false,
    isCut,
    isApex: (flags & FLAG_APEX) !== 0,
    isEmptyNonTerminal: isEmpty && hasChildren,
    // Names below may have nothing left except proofs, which this round removes.
    isDeclared: isEmpty && (flags & FLAG_DECLARED) !== 0,
    sets,
  }
}

/** True if a name has only signatures and proofs, which it loses in this round: its source has removed it. */
export function isLeftover(view: ZoneView, body: number): boolean {
  if ((view.flags(body) & (FLAG_HASHED | FLAG_DECLARED)) !== 0) return false
  const sets = view.sets(body)
  return sets.length > 0 && sets.every(({ type }) => MADE.has(type))
}

/** True if something at the name is signed, apart from the proofs of absence. */
export function isSignedSet(type: number, { isCut }: OwnerKind): boolean {
  return !isCut || type === RRType.DS
}

/**
 * Returns the lists of types that proofs at a name have: first that of all types, then one without each type that may
 * have no records (see signature-directory.ts). A type whose answers never have records is in no list.
 * `missing`: by list, the type that it lacks; the first has 0.
 */
export function typeLists(sets: readonly ImageSet[]): { types: number[]; missing: number[] } {
  const types: number[] = []
  const missing = [0]
  for (const set of sets) {
    if (set.steering === undefined || !hasEmptyOutcome(set.steering, 0)) {
      types.push(set.type)
      continue
    }
    const { answers } = answersOf(set)
    const empty = answers.filter((answer) => answer.rdata.length === 0).length
    if (empty < answers.length) types.push(set.type)
    if (empty > 0 && empty < answers.length) missing.push(set.type)
  }
  return { types, missing }
}
