import { composeNsec3, composeNsec3Param } from '../../dns/dnssec/denial-rdata.ts'
import { Nsec3Hasher } from '../../dns/dnssec/nsec3.ts'
import { RRType } from '../../dns/iana/types.ts'
import { keyOwner, ownerKey, parentKey, placeAfter } from './canonical-key.ts'
import { type DenialPlan, EditedChain, mergeKeys, sortedKeys, sortKeys } from './denial-plan.ts'
import { kindOf, type OwnerKind, typeLists } from './name-types.ts'
import type { SetData } from './set-answers.ts'
import type { ZoneView } from './zone-view.ts'

const PARAMETERS = composeNsec3Param()
/** Octets of NSEC3 rdata before the next hash: algorithm, flags, iterations, length of the salt, of the hash. */
const NEXT_HASH = 6

/** Names between two pauses. */
const SLICE_NAMES = 256

interface Nsec3Options {
  readonly ttlSeconds: number
  readonly isOptOut: boolean
}

/** Computes the keys of the hashed owners of a zone. */
class HashedKeys {
  readonly #hasher = new Nsec3Hasher()

  keyOf(owner: Uint8Array): string {
    this.#hasher.hash(owner, 0, owner.length, false, PARAMETERS, 0)
    return ownerKey(this.#hasher.label, 0)
  }
}

/** True if a name has an NSEC3 record (RFC 5155 section 7.1). */
function hasNsec3(kind: OwnerKind, isOptOut: boolean): boolean {
  const { isOutside, isCut, sets, isEmptyNonTerminal, isDeclared } = kind
  if (isOutside) return false
  if (isOptOut && isCut) return sets.some(({ type }) => type === RRType.DS)
  return sets.length > 0 || isEmptyNonTerminal || isDeclared
}

/** Plans the NSEC3 records of the touched names and of the empty non-terminals above them. */
export function planNsec3(
  view: ZoneView,
  touched: Iterable<string>,
  options: Nsec3Options,
): DenialPlan {
  const base = view.chain(RRType.NSEC3)
  const names = withAncestors(touched)
  const hashed = new HashedKeys()
  const nameOf = new Map<string, string>()
  const joined = new Set<string>()
  const left = new Set<string>()
  for (const key of names) {
    const owner = keyOwner(key, view.apex)
    const isOwner = hasNsec3(kindOf(view, owner, view.find(owner)), options.isOptOut)
    const hash = hashed.keyOf(owner)
    const wasOwner = base.seek(hash)
    if (isOwner && !wasOwner) joined.add(hash)
    if (wasOwner && !isOwner) left.add(hash)
    if (isOwner || wasOwner) nameOf.set(hash, key)
  }
  const chain = new EditedChain(base, joined, left)
  const others = [...joined, ...left].map((hash) => chain.previous(hash) ?? hash)
  const keys = sortedKeys([...names, ...nameOf.keys(), ...others])
  const nextOf = (hash: string): string => chain.next(hash)
  return {
    type: RRType.NSEC3,
    keys,
    denialOf: (view, key) => {
      const name = nameOf.get(key)
      if (name !== undefined) return nsec3Of(view, name, nextOf(key), options)
      return base.seek(key) ? movedNext(view, key, nextOf(key), options) : undefined
    },
  }
}

/** Plans the NSEC3 records of a whole zone, with pauses. `keys`: of all names that exist, sorted. */
export function* planAllNsec3(
  view: ZoneView,
  keys: readonly string[],
  options: Nsec3Options,
): Generator<void, DenialPlan> {
  const hashed = new HashedKeys()
  const nameOf = new Map<string, string>()
  for (const [i, key] of keys.entries()) {
    const owner = keyOwner(key, view.apex)
    const kind = kindOf(view, owner, view.find(owner))
    if (hasNsec3(kind, options.isOptOut)) nameOf.set(hashed.keyOf(owner), key)
    if (i % SLICE_NAMES === 0) yield
  }
  const owners = yield* sortKeys([...nameOf.keys()])
  return {
    type: RRType.NSEC3,
    keys: yield* mergeKeys(keys, owners),
    denialOf: (view, key) => {
      const name = nameOf.get(key)
      if (name === undefined) return undefined
      const next = owners[placeAfter(owners.length, (i) => owners[i]!, key)] ?? owners[0]!
      return nsec3Of(view, name, next, options)
    },
  }
}

/** A name can make empty non-terminals above it, or remove them. */
function withAncestors(touched: Iterable<string>): Set<string> {
  const names = new Set<string>()
  for (const key of touched) {
    names.add(key)
    for (let above = key; above !== ''; ) {
      above = parentKey(above)
      if (names.has(above)) break
      names.add(above)
    }
  }
  return names
}

function nsec3Of(
  view: ZoneView,
  name: string,
  next: string,
  { ttlSeconds, isOptOut }: Nsec3Options,
): SetData | undefined {
  const owner = keyOwner(name, view.apex)
  const kind = kindOf(view, owner, view.find(owner))
  if (!hasNsec3(kind, isOptOut)) return undefined
  const { types, missing } = typeLists(kind.sets)
  const isSigned = kind.isCut ? types.includes(RRType.DS) : types.length > 0
  const all = isSigned ? [...types, RRType.RRSIG] : types
  const label = keyOwner(next, new Uint8Array(0))
  const rdata = missing.map((lacking) =>
    composeNsec3(
      label,
      all.filter((type) => type !== lacking),
      { isOptOut },
    ),
  )
  return { type: RRType.NSEC3, ttlSeconds, rdata }
}

/** Returns the NSEC3 RRset of a hashed owner with another next one. */
function movedNext(
  view: ZoneView,
  key: string,
  next: string,
  { ttlSeconds }: Nsec3Options,
): SetData | undefined {
  const set = view.set(view.find(keyOwner(key, view.apex)), RRType.NSEC3)
  if (set === undefined) return undefined
  const empty = composeNsec3(keyOwner(next, new Uint8Array(0)), [], { isOptOut: false })
  const rdata = set.rdata.map((one) => {
    const moved = one.slice()
    moved.set(empty.subarray(NEXT_HASH), NEXT_HASH)
    return moved
  })
  return { type: RRType.NSEC3, ttlSeconds, rdata }
}
