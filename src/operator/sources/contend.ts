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
  const [first] = [...contenders].sort(comparePossession)
  if (first === undefined || contenders.length === 1) return refused
  const served: Contender[] = []
  for (const one of [...contenders].sort(compareAge)) {
    const refusal =
      first.of.namespace !== one.of.namespace && !isShared(one.host, one.of.namespace, shares)
        ? notOwned(first)
        : conflictWith(one, served)
    if (refusal === undefined) served.push(one)
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
  return compareTimes(a.created, b.created) || (nameOf(a) < nameOf(b) ? -1 : 1)
}

function compareTimes(a: string, b: string): number {
  if (a === b) return 0
  return b === '' || (a !== '' && a < b) ? -1 : 1
}

function nameOf({ of: { namespace, name }, key }: Contender): string {
  return JSON.stringify([namespace, name, key])
}

function notOwned(by: Contender): Refusal {
  const text = `namespace ${by.of.namespace} had the host first, with ${printObject(by.of)}; use another host, or share it with --share-hosts of the operator`
  return { reason: 'HostNotOwned', by, text }
}

function conflictWith(one: Contender, served: readonly Contender[]): Refusal | undefined {
  for (const by of served) {
    for (const ours of one.endpoints) {
      const theirs = by.endpoints.find((other) => areInConflict(ours, other))
      if (theirs === undefined) continue
      const text = `${show(ours)} of ${printObject(one.of)} conflicts with ${show(theirs)} of ${printObject(by.of)}, which is older and is served; change one of the two`
      return { reason: 'HostConflict', by, text }
    }
  }
  return undefined
}

/** Endpoints of one name: a CNAME must be alone, and a set identifier has one content. */
function areInConflict(a: Endpoint, b: Endpoint): boolean {
  if (printHost(a.owner) !== printHost(b.owner)) return false
  if (a.type !== b.type) return a.type === RRType.CNAME || b.type === RRType.CNAME
  if (a.setIdentifier !== b.setIdentifier) return false
  if (a.setIdentifier === '' && (isChosen(a) || isChosen(b))) return false
  return contentKey(a) !== contentKey(b)
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
