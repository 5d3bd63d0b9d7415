import {
  ALLOW_SETS,
  type AllowSetName,
  type ListedElement,
  scanElement,
} from './allowed-element.ts'
import type { Element, ElementOrigin, ElementStore } from './element-store.ts'
import type { TableListing } from './table-listing.ts'

/** Elements between two pauses. A listing may have 100 000, and queries must not wait for them. */
const SLICE = 2000
/** Difference of two ends of a timeout that rounding and a busy machine explain. */
const DRIFT_MS = 5000
const NEVER = Number.NEGATIVE_INFINITY

interface ListedKernel {
  readonly listing: TableListing
  /** Monotonic milliseconds when the listing began and ended: each element was read between them. */
  readonly startMs: number
  readonly endMs: number
  /** Origin of elements that the store does not have. */
  readonly origin: ElementOrigin
  /** True if an element of this kind may stay until its timeout. */
  readonly mayKeep: (element: ListedElement) => boolean
  /** True if a transaction may have changed the element since the listing began. */
  readonly isTouched: (set: AllowSetName, text: string) => boolean
}

/**
 * Brings the store to what the kernel has: it notes what must be written. Returns the number of elements that
 * others removed, changed or added in the kernel.
 */
export async function applyListing(store: ElementStore, listed: ListedKernel): Promise<number> {
  const seen = new Set<Element>()
  let differences = 0
  let count = 0
  for (const set of ALLOW_SETS) {
    for (const text of listed.listing.elements.get(set) ?? []) {
      if (++count % SLICE === 0) await new Promise((resolve) => setImmediate(resolve))
      const parsed = scanElement(text)
      if (parsed === undefined || listed.isTouched(set, parsed.text)) continue
      // The transaction in progress may be in the listing already.
      if (store.get(set, parsed.text)?.writingMs !== undefined) continue
      if (!noteListed(store, set, parsed, listed)) differences++
      const element = store.get(set, parsed.text)
      if (element !== undefined) seen.add(element)
    }
  }
  return differences + noteMissing(store, seen, listed)
}

/** Notes an element that the kernel has. Returns false if that is not what it was expected to have. */
function noteListed(
  store: ElementStore,
  set: AllowSetName,
  parsed: ListedElement,
  { startMs, endMs, origin, mayKeep }: ListedKernel,
): boolean {
  const known = store.get(set, parsed.text)
  if (known !== undefined) {
    const wasThere = known.kernelMs !== NEVER
    const { expiresMs } = parsed
    const isEarlier = known.kernelMs < startMs + expiresMs - DRIFT_MS
    const isLater = known.kernelMs > endMs + expiresMs + DRIFT_MS
    if (!isEarlier && !isLater) return true
    store.setKernel(known, startMs + expiresMs)
    return !wasThere
  }
  const isKept = Number.isFinite(parsed.expiresMs) && mayKeep(parsed)
  const element = store.adopt(set, parsed, origin, startMs)
  if (element !== undefined && !isKept) store.remove(element)
  return isKept
}

/** Notes the elements that the kernel has lost. Returns the number of those that are still wanted. */
function noteMissing(
  store: ElementStore,
  seen: ReadonlySet<Element>,
  { endMs, isTouched }: ListedKernel,
): number {
  let differences = 0
  for (const element of [...store.all()]) {
    const { set, text, kernelMs, origin } = element
    if (seen.has(element) || element.writingMs !== undefined || isTouched(set, text)) continue
    // Its timeout may have passed.
    if (kernelMs === NEVER || kernelMs < endMs + DRIFT_MS) continue
    store.setKernel(element, NEVER)
    // The process that had added it may have removed it.
    if (origin !== 'declared') store.remove(element)
    else differences++
  }
  return differences
}
