import type { SigningPolicy } from '../zone-keys.ts'
import { type DenialPlan, sortedKeys, sortKeys } from './denial-plan.ts'
import { planAllNsec, planNsec } from './nsec-plan.ts'
import { planAllNsec3, planNsec3 } from './nsec3-plan.ts'
import type { ZoneView } from './zone-view.ts'

/** Names between two pauses. */
const SLICE_NAMES = 256

/** Plans which proofs of absence change with the touched names. */
export function planTouched(
  view: ZoneView,
  touched: ReadonlySet<string>,
  policy: SigningPolicy,
  ttlSeconds: number,
): DenialPlan {
  switch (policy.denial) {
    case 'nsec':
      return planNsec(view, touched, ttlSeconds)
    case 'nsec3':
      return planNsec3(view, touched, { ttlSeconds, isOptOut: policy.optOut })
    case 'compact':
      return { type: 0, keys: sortedKeys(touched), denialOf: () => undefined }
  }
}

/** Plans all proofs of absence of a zone; pauses now and then. */
export function* planAll(
  view: ZoneView,
  policy: SigningPolicy,
  ttlSeconds: number,
): Generator<void, DenialPlan> {
  const keys = yield* namesOf(view)
  switch (policy.denial) {
    case 'nsec':
      return yield* planAllNsec(view, keys, ttlSeconds)
    case 'nsec3':
      return yield* planAllNsec3(view, keys, { ttlSeconds, isOptOut: policy.optOut })
    case 'compact':
      return { type: 0, keys, denialOf: () => undefined }
  }
}

/** Returns the keys of all names of the zone, sorted. */
function* namesOf(view: ZoneView): Generator<void, string[]> {
  const keys: string[] = []
  for (const node of view.nodes()) {
    if (view.bodyOf(node) !== 0) keys.push(view.keyOf(node))
    if (keys.length % SLICE_NAMES === 0) yield
  }
  // The newest is first, and most zones are written in order.
  keys.reverse()
  return yield* sortKeys(keys)
}
