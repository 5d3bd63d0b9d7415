import { scanAddress } from '../../../dns/text/address.ts'
import type { Allowance } from '../../rules/allowance.ts'
import type { AddressPair } from '../enforcer.ts'
import { type AllowSetName, type ListedElement, printElement, setOf } from './allowed-element.ts'

/** Elements stay for so long after their end. An allowance that must last longer has a later end. */
export const SLACK_MS = 2000
/**
 * An element whose timeout is so close is not in force: the client may need longer to connect, and a refresh may
 * wait for `REFRESH_MS`.
 */
const FRESH_MS = 2000
/** Longest wait of a refresh of an element that is in force: one transaction has those of many answers. */
export const REFRESH_MS = 1000
/** A refresh can wait while the kernel has an element for longer than this, and for half of what it must last. */
const EARLY_MS = 30_000
/** Longest timeout. */
const END_MS_MAX = 30 * 86_400_000
/** The end of an element that is to be removed, or that the kernel does not have. */
const NEVER = Number.NEGATIVE_INFINITY
const UNKNOWN = Number.POSITIVE_INFINITY

/** Who wants an element. */
export type ElementOrigin =
  /** `allow` of this process. */
  | 'declared'
  /** An earlier process, whose element it was when this one started. */
  | 'adopted'
  /** A process beside this one. */
  | 'foreign'

/** An element of an allow set. Times are monotonic milliseconds. */
export interface Element {
  readonly set: AllowSetName
  readonly pair: AddressPair
  readonly text: string
  origin: ElementOrigin
  /** -Infinity = it is to be removed. */
  endMs: number
  /** If its timeout in the kernel is before this, it must be refreshed. At most `endMs`. */
  neededMs: number
  /** End of its timeout in the kernel; -Infinity = the kernel does not have it, Infinity = it is not known. */
  kernelMs: number
  /** What `kernelMs` will be after the transaction in progress; undefined = it does not change the element. */
  writingMs: number | undefined
}

/** True if the kernel has what is wanted, also if the element is to be refreshed. */
export function isInForce(element: Element, nowMs: number): boolean {
  const { endMs, kernelMs, writingMs = kernelMs } = element
  if (endMs === NEVER) return kernelMs === NEVER && writingMs === NEVER
  const neededMs = Math.min(endMs, nowMs + FRESH_MS)
  // The transaction may do the contrary of what is wanted by now.
  return kernelMs >= neededMs && writingMs >= neededMs && kernelMs < UNKNOWN
}

/** Each client may have a third of the elements, or this number if it is larger: so one does not take those of all. */
const OWN_ELEMENTS_MIN = 1000
const OWN_SHARE = 3

/**
 * The elements that are wanted, and what the kernel has of them. It is declarative: `allow` replaces
 * what a pair had.
 */
export class ElementStore {
  readonly #elementsMax: number
  readonly #elements = new Map<string, Element>()
  /** By the addresses of the client and of the destination. */
  readonly #pairs = new Map<string, Map<string, Set<Element>>>()
  /** Elements of each client. */
  readonly #ownSizes = new Map<string, number>()
  /** Elements whose copy in the kernel differs. */
  readonly changed = new Set<Element>()
  /** Those of them that replies wait for, and elements in flight. */
  readonly urgent = new Set<Element>()
  /** Elements that were refused at a limit. */
  refused = 0
  /** False: what an earlier process added stays, whatever its pair is set to. */
  isExact = false

  constructor(elementsMax: number) {
    this.#elementsMax = elementsMax
  }

  get size(): number {
    return this.#elements.size
  }

  all(): Iterable<Element> {
    return this.#elements.values()
  }

  get(set: AllowSetName, text: string): Element | undefined {
    return this.#elements.get(keyOf(set, text))
  }

  /**
   * Replaces the elements of a pair, except those of another process that may stay. Adds to `missing`
   * what is not in force yet: additions and removals. Returns what is wrong; '' = nothing.
   */
  allow(
    pair: AddressPair,
    allowances: readonly Allowance[],
    nowMs: number,
    missing: Element[],
  ): string {
    const client = scanAddress(pair.client)
    const address = scanAddress(pair.address)
    const family = address?.family
    if (family === undefined || client?.family !== family) return 'invalid pair of addresses'
    const wanted = new Set<Element>()
    let fault = ''
    const isNew = this.#pairs.get(pair.client)?.has(pair.address) !== true
    const full = new Set<AllowSetName>()
    for (const { ports, endMs } of allowances) {
      if (endMs < nowMs) continue
      const set = setOf(family, ports)
      // There may be thousands of ports, for each of thousands of addresses.
      if (isNew && full.has(set)) {
        this.refused++
        continue
      }
      const element = this.#put(set, pair, printElement(pair, ports))
      if (element === undefined) {
        this.refused++
        fault = this.#refusalOf(pair.client)
        full.add(set)
        continue
      }
      const known = wanted.has(element) ? element.endMs : NEVER
      element.endMs = Math.max(known, Math.min(endMs, nowMs + END_MS_MAX))
      element.neededMs = neededMs(element.endMs, nowMs)
      element.origin = 'declared'
      wanted.add(element)
      this.#note(element)
      this.#demand(element, nowMs, missing)
    }
    const ranges = new Set([...wanted].map(({ set }) => set).filter(hasIntervals))
    for (const element of this.#pairs.get(pair.client)?.get(pair.address) ?? []) {
      // The kernel refuses ranges that overlap, and with one of them the whole transaction.
      const isLeft = this.#isOfOther(element) && !ranges.has(element.set)
      if (wanted.has(element) || isLeft) continue
      this.remove(element)
      this.#demand(element, nowMs, missing)
    }
    return fault
  }

  /** True for elements of another process, which other changes of a pair do not remove. */
  #isOfOther({ origin }: Element): boolean {
    return origin === 'foreign' || (origin === 'adopted' && !this.isExact)
  }

  /** Adds an element that is not in force to `missing`. */
  #demand(element: Element, nowMs: number, missing: Element[]): void {
    if (isInForce(element, nowMs)) return
    missing.push(element)
    this.urgent.add(element)
  }

  remove(element: Element): void {
    element.endMs = NEVER
    this.#note(element)
  }

  /** Removes what a client may connect to; with `isKept`, only the elements for which it is false. */
  removeClient(client: string, isKept: (element: Element) => boolean): void {
    for (const elements of this.#pairs.get(client)?.values() ?? []) {
      for (const element of elements) if (!isKept(element)) this.remove(element)
    }
  }

  /** Notes an element of the kernel that is not in the store. It stays until its timeout. */
  adopt(
    set: AllowSetName,
    { pair, text, expiresMs }: ListedElement,
    origin: ElementOrigin,
    nowMs: number,
  ): Element | undefined {
    const element = this.#put(set, pair, text)
    if (element === undefined) return undefined
    element.origin = origin
    element.kernelMs = nowMs + expiresMs
    element.endMs = element.kernelMs - SLACK_MS
    element.neededMs = element.endMs
    this.#note(element)
    return element
  }

  /** Returns up to `most` elements that a transaction is to change, those that replies wait for first. */
  take(most: number, nowMs: number): ReadonlySet<Element> {
    for (const element of this.changed) {
      if (element.endMs + SLACK_MS <= nowMs) this.remove(element)
    }
    const taken = new Set<Element>()
    for (const element of [...this.urgent, ...this.changed]) {
      if (taken.size >= most) break
      this.urgent.delete(element)
      if (this.changed.has(element)) taken.add(element)
    }
    return taken
  }

  /** Returns all elements, for a transaction that writes all of them. */
  takeAll(nowMs: number): ReadonlySet<Element> {
    for (const element of this.#elements.values()) this.changed.add(element)
    return this.take(UNKNOWN, nowMs)
  }

  /** Notes what a transaction wrote: the end of the element's timeout in the kernel. */
  noteWritten(element: Element, kernelMs: number): void {
    element.writingMs = undefined
    this.setKernel(element, kernelMs)
  }

  /** Notes that it is not known what the kernel has. */
  forgetKernel(): void {
    for (const element of this.#elements.values()) element.kernelMs = UNKNOWN
  }

  /** Notes what the kernel has of an element. */
  setKernel(element: Element, kernelMs: number): void {
    element.kernelMs = kernelMs
    this.#note(element)
  }

  /** Forgets the elements whose timeout has passed, and finds those that must be refreshed. Call it every 10 s. */
  expire(nowMs: number): void {
    for (const element of this.#elements.values()) {
      const { endMs, kernelMs, writingMs } = element
      if (kernelMs < endMs) {
        element.neededMs = neededMs(endMs, nowMs)
        this.#note(element)
      }
      if (endMs + SLACK_MS >= nowMs || kernelMs >= nowMs || writingMs !== undefined) continue
      element.kernelMs = NEVER
      this.remove(element)
    }
  }

  /** Adds the element to `changed`, or forgets it if neither side has it. */
  #note(element: Element): void {
    const { set, pair, text, endMs, neededMs, kernelMs } = element
    const isWanted = endMs !== NEVER
    const isEqual = isWanted
      ? kernelMs >= neededMs && kernelMs <= endMs + 2 * SLACK_MS
      : kernelMs === NEVER
    if (isEqual) {
      this.changed.delete(element)
      this.urgent.delete(element)
    } else this.changed.add(element)
    if (endMs !== NEVER || kernelMs !== NEVER || element.writingMs !== undefined) return
    const key = keyOf(set, text)
    if (this.#elements.get(key) !== element) return
    this.#elements.delete(key)
    const own = this.#ownSizes.get(pair.client)! - 1
    if (own === 0) this.#ownSizes.delete(pair.client)
    else this.#ownSizes.set(pair.client, own)
    const addresses = this.#pairs.get(pair.client)!
    const elements = addresses.get(pair.address)!
    elements.delete(element)
    if (elements.size === 0) addresses.delete(pair.address)
    if (addresses.size === 0) this.#pairs.delete(pair.client)
  }

  /** Why a set can't have one more element of a client; '' = it can. */
  #refusalOf(client: string): string {
    if (this.#elements.size >= this.#elementsMax) return 'the sets are full'
    const own = this.#ownSizes.get(client) ?? 0
    const isFull = own >= Math.max(OWN_ELEMENTS_MIN, this.#elementsMax / OWN_SHARE)
    return isFull ? `${client} has too many elements` : ''
  }

  /** Returns the element. Adds it if it is missing, or returns undefined if the set is full. */
  #put(set: AllowSetName, pair: AddressPair, text: string): Element | undefined {
    const key = keyOf(set, text)
    const known = this.#elements.get(key)
    if (known !== undefined) return known
    if (this.#refusalOf(pair.client) !== '') return undefined
    this.#ownSizes.set(pair.client, (this.#ownSizes.get(pair.client) ?? 0) + 1)
    const none = { endMs: NEVER, neededMs: NEVER, kernelMs: NEVER, writingMs: undefined }
    const element: Element = { set, pair, text, origin: 'foreign', ...none }
    this.#elements.set(key, element)
    let addresses = this.#pairs.get(pair.client)
    if (addresses === undefined) this.#pairs.set(pair.client, (addresses = new Map()))
    const elements = addresses.get(pair.address)
    if (elements === undefined) addresses.set(pair.address, new Set([element]))
    else elements.add(element)
    return element
  }
}

/** Until when the kernel must have an element, so that nothing need be done until the next check. */
function neededMs(endMs: number, nowMs: number): number {
  return Math.min(endMs, nowMs + Math.max(EARLY_MS, (endMs - nowMs) / 2))
}

/** True if the elements of the set are ranges. */
function hasIntervals(set: AllowSetName): boolean {
  return set.startsWith('range')
}

function keyOf(set: AllowSetName, text: string): string {
  return `${set} ${text}`
}
