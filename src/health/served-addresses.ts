import { RRType } from '../dns/iana/types.ts'
import { nameKey } from '../dns/name/name.ts'
import { printAddress, scanAddress } from '../dns/text/address.ts'
import type { Endpoint } from '../records/dns-record.ts'
import { type PackedRecord, unpackRecord } from '../records/pack.ts'
import { printHost } from '../records/print-endpoint.ts'
import { scanHost } from '../records/validate/names.ts'
import { NO_DRAINS, type RecordDrains } from './drain/drain.ts'

/**
 * Addresses of a record in canonical form, and host names that the record has no endpoint for.
 * Excludes those that are down.
 */
type ServedAddresses = ReadonlySet<string>

interface ServedChange {
  readonly were: ServedAddresses
  readonly are: ServedAddresses
  /** Addresses that were not served before the change, because they were down or drained. */
  readonly wereOut: ServedAddresses
  /** True if the record has endpoints with a weight after the change. */
  readonly isWeighted: boolean
}

/** The content of a record, and which of its addresses are down or drained. */
export interface ServedContent {
  readonly packed: PackedRecord
  readonly down: readonly string[]
  readonly drains: RecordDrains
}

/**
 * Compares what a record served before and after a change. The target of a CNAME, old or new,
 * counts only while a CNAME leads to it. Another system may take a failed address out of service by
 * removing its CNAME only.
 */
export function compareServed(before: ServedContent, after: ServedContent): ServedChange {
  const old = unpackRecord(before.packed).endpoints
  const now = unpackRecord(after.packed).endpoints
  const inner = new Set([...targetsOf(old), ...targetsOf(now)])
  const wereDown = readDown(before.down)
  const were = follow(old, wereDown, inner, before.drains)
  const possible = before.drains === NO_DRAINS ? [] : follow(old, new Set(), inner, NO_DRAINS)
  return {
    were,
    are: follow(now, readDown(after.down), inner, after.drains),
    wereOut: new Set([...wereDown, ...[...possible].filter((address) => !were.has(address))]),
    isWeighted: now.some(({ weight }) => weight !== undefined),
  }
}

/** Returns addresses that are down in the form of ServedAddresses. */
function readDown(down: readonly string[]): ReadonlySet<string> {
  return new Set(down.map(canonical))
}

/** Map keys of all CNAME targets. */
function targetsOf(endpoints: readonly Endpoint[]): ReadonlySet<string> {
  const cnames = endpoints.filter(({ type }) => type === RRType.CNAME)
  return new Set(cnames.flatMap(({ rdata }) => rdata.map((name) => nameKey(name))))
}

/** Follows CNAMEs. `inner`: owners that clients do not query directly. */
function follow(
  endpoints: readonly Endpoint[],
  down: ReadonlySet<string>,
  inner: ReadonlySet<string>,
  { endpoints: marks }: RecordDrains,
): ServedAddresses {
  const byOwner = new Map<string, number[]>()
  for (const [i, endpoint] of endpoints.entries()) {
    const owner = nameKey(endpoint.owner)
    const others = byOwner.get(owner)
    if (others === undefined) byOwner.set(owner, [i])
    else others.push(i)
  }
  const found = new Set<string>()
  // The set grows during the iteration; each owner is visited once.
  const owners = new Set([...byOwner.keys()].filter((owner) => !inner.has(owner)))
  for (const owner of owners) {
    for (const i of byOwner.get(owner)!) {
      const { type, rdata } = endpoints[i]!
      for (const [index, target] of rdata.entries()) {
        if (marks[i]?.has(index) === true) continue
        const key = type === RRType.CNAME ? nameKey(target) : ''
        if (byOwner.has(key)) owners.add(key)
        else found.add(printPlace(type, target))
      }
    }
  }
  for (const address of down) found.delete(address)
  found.delete('')
  return found
}

/** Returns the address or host name as text; '' = neither. */
function printPlace(type: number, rdata: Uint8Array): string {
  if (type === RRType.A) return printAddress(rdata, 1)
  if (type === RRType.AAAA) return printAddress(rdata, 2)
  return type === RRType.CNAME ? printHost(rdata) : ''
}

function canonical(text: string): string {
  const address = scanAddress(text)
  if (address !== undefined) return printAddress(address.bytes, address.family)
  const host = scanHost(text)
  return host === undefined ? text : printHost(host)
}
