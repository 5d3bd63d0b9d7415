import { RRType } from '../dns/iana/types.ts'
import { printRdata } from '../dns/rdata/index.ts'
import { printDrain } from '../health/drain/drain.ts'
import { downReasonOf } from '../publish/build/down-reason.ts'
import type { BuildReport, Contribution, Drop, OwnerSet } from '../publish/build/owner-set.ts'
import type { ExplainableZone, ExplainableZones } from '../publish/explainable.ts'
import { ALIAS_TYPE } from '../records/dns-record.ts'
import type { Candidate } from '../steering/candidate.ts'

/** An endpoint of an owner, as the RRset was built from it. */
export interface BuiltEndpoint {
  readonly contribution: Contribution
  readonly dropped: Drop | undefined
  /** Empty if it is dropped. */
  readonly candidates: readonly Candidate[]
}

/** The RRset of an owner and type, with the endpoints that it was built from. */
export interface BuiltSet {
  /** Undefined = no endpoint is served. */
  readonly set: OwnerSet | undefined
  readonly endpoints: readonly BuiltEndpoint[]
  /** Types of all RRsets of the owner. */
  readonly types: readonly number[]
}

/** Builds the RRset once more, and returns what became of each endpoint. `owner`: lower-case wire form. */
export function buildSet(zone: ExplainableZone, owner: Uint8Array, type: number): BuiltSet {
  const endpoints: BuiltEndpoint[] = []
  const report: BuildReport = {
    dropped: (contribution, dropped) => endpoints.push({ contribution, dropped, candidates: [] }),
    kept: (contribution, candidates) =>
      endpoints.push({ contribution, dropped: undefined, candidates }),
  }
  const sets = zone.records.explain(owner, report)
  return {
    set: sets.find((set) => set.type === type),
    endpoints: endpoints.filter(({ contribution }) => isOfType(contribution.endpoint.type, type)),
    types: sets.map((set) => set.type),
  }
}

/** An ALIAS stands for A and AAAA. */
function isOfType(own: number, type: number): boolean {
  return own === type || (own === ALIAS_TYPE && (type === RRType.A || type === RRType.AAAA))
}

/** Prints why an endpoint is not a candidate; '' = it is one. */
export function printDrop(drop: Drop | undefined): string {
  switch (drop?.kind) {
    case undefined:
      return ''
    case 'down':
      return 'all its targets are down'
    case 'unresolved':
      return 'its target has no addresses'
    case 'drained':
      return `drained: ${printDrain(drop.drain)}`
    case 'cname':
      return `a name has either a CNAME or other types; the other kind came first (${drop.by}), or the name is the apex`
    case 'merged':
      return `equal to another endpoint, which represents both (${drop.by})`
    case 'contradicted':
      return `another endpoint has the same set identifier with other content, and came first (${drop.by})`
    default:
      return 'the RRset has too many endpoints'
  }
}

/** Lists the targets of an endpoint that are drained or down, with reasons. */
export function targetsOut(
  { key, endpoint, down, drained }: Contribution,
  zones: ExplainableZones,
): { readonly target: string; readonly reason: string }[] {
  const drains = [...(drained ?? [])].map(([index, drain]) => {
    const target = printRdata(endpoint.type, endpoint.rdata[index]!)
    return { target, reason: `drained: ${printDrain(drain)}` }
  })
  const failures = [...down].map((index) => ({
    target: printRdata(endpoint.type, endpoint.rdata[index]!),
    reason: `down: ${downReasonOf({ key, endpoint }, index, zones.downReason)}`,
  }))
  return [...drains, ...failures]
}
