import { scanAddress } from '../../dns/text/address.ts'
import type { Allowance } from '../../egress/rules/allowance.ts'
import type { AddressPair } from '../enforcer.ts'
import { type AllowSetName, type ListedElement, printElement, setOf } from './allowed-element.ts'

/** Elements stay for so long after their end. An allowance that must last longer has a later end. */
export const SLACK_MS = 2000
/** An element whose timeout is so close is not in force: the client may need longer to connect. */
const FRESH_MS = 1000
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
  /** End of its timeout in the kernel; -Infinity = the kernel does not have it, Infinity = it is not known. */
  kernelMs: number
  /** True while a transaction changes it. */
  isInFlight: boolean
}

/** True if the kernel has what is wanted, also if the element is to be refreshed. */
export function isInForce({ endMs, kernelMs, isInFlight }: Element, nowMs: number): boolean {
  // The transaction may do the contrary of what is wanted by now.
  if (isInFlight) return false
  if (endMs === NEVER) return kernelMs === NEVER
  return kernelMs >= Math.min(endMs, nowMs + FRESH_MS) && kernelMs < UNKNOWN
}

/** Each client may have a tenth of a set, or this number if it is larger: so one client does not fill it for all. */
const OWN_ELEMENTS_MIN = 1000

/**
 * The elements that are wanted, and what the kernel has of them. It is declarative: `allow` replaces
 * what a pair had.
 */
export class ElementStore {
  readonly #elementsMax: number
  readonly #elements = new Map<string, Element>()
  /** By the addresses of the client and of the destination. */
  readonly #pairs = new Map<string, Map<string, Set<Element>>>()
  readonly #sizes = new Map<AllowSetName, number>()
  /** The same for each client, by set and client. */
  readonly #ownSizes = new Map<string, number>()
  /** Elements whose copy in the kernel differs. */
  readonly changed = new Set<Element>()
  /** Elements that were refused because their set was full. */
  refused = 0

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
   * Replaces the elements of a pair, except those of a process beside this one. Adds those that are not in
   * force to `missing`, and those that are to be removed. Returns what is wrong; '' = nothing.
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
    for (const { ports, endMs } of allowances) {
      if (endMs < nowMs) continue
      const set = setOf(family, ports)
      const element = this.#put(set, pair, printElement(pair, ports))
      if (element === undefined) {
        this.refused++
        fault = this.#refusalOf(set, pair.client)
        continue
      }
      const known = wanted.has(element) ? element.endMs : NEVER
      element.endMs = Math.max(known, Math.min(endMs, nowMs + END_MS_MAX))
      element.origin = 'declared'
      wanted.add(element)
      this.#note(element)
      if (!isInForce(element, nowMs)) missing.push(element)
    }
    const ranges = new Set([...wanted].map(({ set }) => set).filter(hasIntervals))
    for (const element of this.#pairs.get(pair.client)?.get(pair.address) ?? []) {
      // The kernel refuses ranges that overlap, and with one of them the whole transaction.
      const isLeft = element.origin === 'foreign' && !ranges.has(element.set)
      if (wanted.has(element) || isLeft) continue
      this.remove(element)
      if (!isInForce(element, nowMs)) missing.push(element)
    }
    return fault
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
    this.#note(element)
    return element
  }

  /** Returns up to `most` elements that a transaction is to change. Takes them from `urgent` first. */
  take(urgent: Set<Element>, most: number, nowMs: number): ReadonlySet<Element> {
    for (const element of this.changed) {
      if (element.endMs + SLACK_MS <= nowMs) this.remove(element)
    }
    const taken = new Set<Element>()
    for (const element of [...urgent, ...this.changed]) {
      if (taken.size >= most) break
      urgent.delete(element)
      if (this.changed.has(element)) taken.add(element)
    }
    for (const element of taken) element.isInFlight = true
    return taken
  }

  /** Returns all elements, for a transaction that writes all of them. */
  takeAll(nowMs: number): ReadonlySet<Element> {
    for (const element of this.#elements.values()) this.changed.add(element)
    return this.take(new Set(), UNKNOWN, nowMs)
  }

  /** Notes what a transaction wrote: the end of the element's timeout in the kernel. */
  noteWritten(element: Element, kernelMs: number): void {
    element.isInFlight = false
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

  /** Forgets the elements whose timeout has passed. */
  expire(nowMs: number): void {
    for (const element of this.#elements.values()) {
      const { endMs, kernelMs, isInFlight } = element
      if (endMs + SLACK_MS >= nowMs || kernelMs >= nowMs || isInFlight) continue
      element.kernelMs = NEVER
      this.remove(element)
    }
  }

  /** Adds the element to `changed`, or forgets it if neither side has it. */
  #note(element: Element): void {
    const { set, pair, text, endMs, kernelMs } = element
    const isEqual =
      endMs === NEVER ? kernelMs === NEVER : kernelMs >= endMs && kernelMs <= endMs + 2 * SLACK_MS
    if (isEqual) this.changed.delete(element)
    else this.changed.add(element)
    if (endMs !== NEVER || kernelMs !== NEVER || element.isInFlight) return
    const key = keyOf(set, text)
    if (this.#elements.get(key) !== element) return
    this.#elements.delete(key)
    this.#sizes.set(set, this.#sizes.get(set)! - 1)
    const ownKey = keyOf(set, pair.client)
    const own = this.#ownSizes.get(ownKey)! - 1
    if (own === 0) this.#ownSizes.delete(ownKey)
    else this.#ownSizes.set(ownKey, own)
    const addresses = this.#pairs.get(pair.client)!
    const elements = addresses.get(pair.address)!
    elements.delete(element)
    if (elements.size === 0) addresses.delete(pair.address)
    if (addresses.size === 0) this.#pairs.delete(pair.client)
  }

  /** Why a set can't have one more element of a client; '' = it can. */
  #refusalOf(set: AllowSetName, client: string): string {
    if ((this.#sizes.get(set) ?? 0) >= this.#elementsMax) return `set ${set} is full`
    const own = this.#ownSizes.get(keyOf(set, client)) ?? 0
    const isFull = own >= Math.max(OWN_ELEMENTS_MIN, this.#elementsMax / 10)
    return isFull ? `${client} has too many elements in set ${set}` : ''
  }

  /** Returns the element, and adds it if there is none. Returns undefined if the set is full. */
  #put(set: AllowSetName, pair: AddressPair, text: string): Element | undefined {
    const key = keyOf(set, text)
    const known = this.#elements.get(key)
    if (known !== undefined) return known
    if (this.#refusalOf(set, pair.client) !== '') return undefined
    const ownKey = keyOf(set, pair.client)
    this.#sizes.set(set, (this.#sizes.get(set) ?? 0) + 1)
    this.#ownSizes.set(ownKey, (this.#ownSizes.get(ownKey) ?? 0) + 1)
    const none = { endMs: NEVER, kernelMs: NEVER, isInFlight: false }
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

/** True if the elements of the set are ranges. */
function hasIntervals(set: AllowSetName): boolean {
  return set.startsWith('range')
}

function keyOf(set: AllowSetName, text: string): string {
  return `${set} ${text}`
}
