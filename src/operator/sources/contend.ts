import { printType, RRType } from '../../dns/iana/types.ts'
import { contentKey } from '../../publish/build/equal-endpoints.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { isShared } from '../../records/host-owners.ts'
import type { HostShare } from '../../records/host-share.ts'
import { printHost, printTarget } from '../../records/print-endpoint.ts'
import { type ObjectReference, UNNAMED_SET } from '../../sources/objects/object-kind.ts'

/** Targets that a message shows. */
const TARGETS_MAX = 3

/** A DNSRecord that an object asks for, beside those of other objects for the same host. */
export interface Contender {
  /** `namespace/name` of the DNSRecord. */
  readonly key: string
  readonly of: ObjectReference
  /** When the object was created, RFC 3339; '' = unknown, which is the youngest. */
  readonly created: string
  /** When its DNSRecord was written, RFC 3339; '' = it does not exist yet. */
  readonly written: string
  /** `lowerNameKey` of the host, without `*.`. */
  readonly host: string
  readonly endpoints: readonly Endpoint[]
}

/** Why the DNSRecord of an object is not written. */
export interface Refusal {
  readonly reason: 'HostConflict' | 'HostNotOwned'
  /** The object that is served. */
  readonly by: Contender
  readonly text: string
}

/**
 * Decides which of the DNSRecords for one host are written; returns the others by their keys. A host belongs to the
 * namespace that had it first, and those that share it. In a conflict of two objects the older one is served, and the
 * newer one is left out as a whole.
 */
export function contend(
  contenders: readonly Contender[],
  shares: readonly HostShare[],
): ReadonlyMap<string, Refusal> {
  const refused = new Map<string, Refusal>()
  if (contenders.length < 2) return refused
  const first = contenders.reduce((a, b) => (comparePossession(a, b) <= 0 ? a : b))
  const served = new ServedEndpoints()
  for (const one of [...contenders].sort(compareAge)) {
    const refusal =
      first.of.namespace !== one.of.namespace && !isShared(one.host, one.of.namespace, shares)
        ? notOwned(first)
        : conflictWith(one, served)
    if (refusal === undefined) served.add(one)
    else refused.set(one.key, refusal)
  }
  return refused
}

/** Prints an object as in messages: `Service shop/web`. */
export function printObject({ kind, namespace, name }: ObjectReference): string {
  return `${kind} ${namespace}/${name}`
}

/** A DNSRecord that exists has the host before one that does not, whichever object is older. */
function comparePossession(a: Contender, b: Contender): number {
  return compareTimes(a.written, b.written) || compareAge(a, b)
}

function compareAge(a: Contender, b: Contender): number {
  return (
    compareTimes(a.created, b.created) ||
    compareTexts(a.of.namespace, b.of.namespace) ||
    compareTexts(a.of.name, b.of.name) ||
    compareTexts(a.key, b.key)
  )
}

function compareTimes(a: string, b: string): number {
  if (a === b) return 0
  return b === '' || (a !== '' && a < b) ? -1 : 1
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function notOwned(by: Contender): Refusal {
  const text = `namespace ${by.of.namespace} had the host first, with ${printObject(by.of)}; use another host, or share it with --share-hosts of the operator`
  return { reason: 'HostNotOwned', by, text }
}

function conflictWith(one: Contender, served: ServedEndpoints): Refusal | undefined {
  const found = served.findConflict(one)
  if (found === undefined) return undefined
  const { ours, theirs, by } = found
  const text = `${show(ours)} of ${printObject(one.of)} conflicts with ${show(theirs)} of ${printObject(by.of)}, which is older and is served; change one of the two`
  return { reason: 'HostConflict', by, text }
}

/** An endpoint that is served, of the contender with that number. */
interface Held {
  readonly rank: number
  readonly by: Contender
  readonly theirs: Endpoint
}

interface Conflict extends Held {
  readonly ours: Endpoint
}

/**
 * The endpoints of the contenders that are served, by what they can conflict with: an author may have thousands of
 * objects for one host.
 */
class ServedEndpoints {
  #count = 0
  /** By owner: the oldest endpoint that is a CNAME, and the oldest of another type. */
  readonly #names = new Map<string, Held>()
  readonly #others = new Map<string, Held>()
  /** By owner, type and set identifier: one endpoint of each content. */
  readonly #sets = new Map<string, Map<string, Held>>()

  add(by: Contender): void {
    const rank = this.#count++
    for (const theirs of by.endpoints) {
      const held = { rank, by, theirs }
      const owner = printHost(theirs.owner)
      const ofOwner = theirs.type === RRType.CNAME ? this.#names : this.#others
      if (!ofOwner.has(owner)) ofOwner.set(owner, held)
      if (isFree(theirs)) continue
      const id = setOf(owner, theirs)
      const contents = this.#sets.get(id) ?? new Map<string, Held>()
      this.#sets.set(id, contents)
      const content = contentKey(theirs)
      if (!contents.has(content)) contents.set(content, held)
    }
  }

  /** Returns a conflict with the oldest of them; undefined = none. */
  findConflict({ endpoints }: Contender): Conflict | undefined {
    let oldest: Conflict | undefined
    for (const ours of endpoints) {
      for (const held of this.#conflictsOf(ours)) {
        if (oldest === undefined || held.rank < oldest.rank) oldest = { ...held, ours }
      }
    }
    return oldest
  }

  /** A CNAME must be alone, and a set identifier has one content. */
  *#conflictsOf(ours: Endpoint): Generator<Held> {
    const owner = printHost(ours.owner)
    const ofOtherType = (ours.type === RRType.CNAME ? this.#others : this.#names).get(owner)
    if (ofOtherType !== undefined) yield ofOtherType
    const contents = isFree(ours) ? undefined : this.#sets.get(setOf(owner, ours))
    if (contents === undefined) return
    const own = contentKey(ours)
    for (const [content, held] of contents) if (content !== own) yield held
  }
}

function setOf(owner: string, { type, setIdentifier }: Endpoint): string {
  return `${owner} ${type} ${setIdentifier}`
}

/** True if the endpoint may be beside any others of its type. */
function isFree(endpoint: Endpoint): boolean {
  return endpoint.setIdentifier === '' && isChosen(endpoint)
}

/** True if a weight, a code or a location distinguishes the endpoint from others. */
function isChosen({ weight, codes, isDefault, point }: Endpoint): boolean {
  return weight !== undefined || codes.length > 0 || isDefault || point !== undefined
}

function show({ type, rdata, setIdentifier }: Endpoint): string {
  const shown = rdata.slice(0, TARGETS_MAX).map((one) => printTarget(type, one))
  const more = rdata.length > TARGETS_MAX ? ', …' : ''
  const isNamed = setIdentifier !== '' && setIdentifier !== UNNAMED_SET
  const id = isNamed ? ` with the set identifier ${JSON.stringify(setIdentifier)}` : ''
  return `${printType(type)} ${shown.join(', ')}${more}${id}`
}
