import { composeNsec } from '../../dns/dnssec/denial-rdata.ts'
import { RRType } from '../../dns/iana/types.ts'
import { keyOwner, placeAfter } from './canonical-key.ts'
import { type DenialPlan, EditedChain, sortedKeys } from './denial-plan.ts'
import { kindOf, type OwnerKind, typeLists } from './name-types.ts'
import type { SetData } from './set-answers.ts'
import type { ZoneView } from './zone-view.ts'

/** Names between two pauses. */
const SLICE_NAMES = 256

/** True if a name has an NSEC record (RFC 4035 section 2.3). A name that exists without records needs one, too. */
function hasNsec({ isOutside, sets, isDeclared }: OwnerKind): boolean {
  return !isOutside && (sets.length > 0 || isDeclared)
}

/** Plans the NSEC records of the touched names, and of those before them if they join or leave the chain. */
export function planNsec(
  view: ZoneView,
  touched: Iterable<string>,
  ttlSeconds: number,
): DenialPlan {
  const base = view.chain(RRType.NSEC)
  const joined = new Set<string>()
  const left = new Set<string>()
  const keys = new Set<string>()
  for (const key of touched) {
    const owner = keyOwner(key, view.apex)
    const isOwner = hasNsec(kindOf(view, owner, view.find(owner)))
    const wasOwner = base.seek(key)
    if (isOwner && !wasOwner) joined.add(key)
    if (wasOwner && !isOwner) left.add(key)
    keys.add(key)
  }
  const chain = new EditedChain(base, joined, left)
  for (const key of [...joined, ...left]) keys.add(chain.previous(key) ?? key)
  return plan(sortedKeys(keys), ttlSeconds, (key) => chain.next(key))
}

/** Plans the NSEC records of a whole zone, with pauses. `keys`: of all names that exist, sorted. */
export function* planAllNsec(
  view: ZoneView,
  keys: readonly string[],
  ttlSeconds: number,
): Generator<void, DenialPlan> {
  const owners: string[] = []
  for (const [i, key] of keys.entries()) {
    const owner = keyOwner(key, view.apex)
    if (hasNsec(kindOf(view, owner, view.find(owner)))) owners.push(key)
    if (i % SLICE_NAMES === 0) yield
  }
  return plan(keys, ttlSeconds, (key) => {
    return owners[placeAfter(owners.length, (i) => owners[i]!, key)] ?? ''
  })
}

function plan(
  keys: readonly string[],
  ttlSeconds: number,
  nextOf: (key: string) => string,
): DenialPlan {
  return {
    type: RRType.NSEC,
    keys,
    denialOf: (view, key) => {
      const owner = keyOwner(key, view.apex)
      const kind = kindOf(view, owner, view.find(owner))
      if (!hasNsec(kind)) return undefined
      return nsecOf(kind, keyOwner(nextOf(key), view.apex), ttlSeconds)
    },
  }
}

function nsecOf(kind: OwnerKind, next: Uint8Array, ttlSeconds: number): SetData {
  const { types, missing } = typeLists(kind.sets)
  const all = [...types, RRType.RRSIG, RRType.NSEC]
  const rdata = missing.map((lacking) =>
    composeNsec(
      next,
      all.filter((type) => type !== lacking),
    ),
  )
  return { type: RRType.NSEC, ttlSeconds, rdata }
}
