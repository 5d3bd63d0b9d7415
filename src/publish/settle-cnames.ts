import { printType, RRType } from '../dns/iana/types.ts'
import { printName } from '../dns/name/name.ts'
import { type BuildOptions, type Contribution, DEFAULT_KEY } from './owner-sets.ts'
import { type Conflict, conflictAt, contrast } from './record-conflicts.ts'

/**
 * Returns the contributions without CNAME, or only those, because a name has either a CNAME or other
 * types (RFC 1034 section 3.6.2): the first one decides. `ordered`: at least one.
 */
export function settleCnames(
  owner: Uint8Array,
  ordered: readonly Contribution[],
  { isApex, report }: BuildOptions,
  conflicts: Conflict[],
): readonly Contribution[] {
  const cname = ordered.find(isCname)
  if (cname === undefined) return ordered
  const other = ordered.find((c) => !isCname(c))
  if (other === undefined && !isApex) return ordered
  const keepsCname = !isApex && isCname(ordered[0]!)
  const yielding = keepsCname ? other! : cname
  const text = `${printName(owner)}: ${describe(cname, other)}: the CNAME is ${keepsCname ? '' : 'not '}served`
  const isRecord = other !== undefined && other.key !== DEFAULT_KEY
  conflicts.push(conflictAt(yielding, `${text}; delete ${isRecord ? 'one of them' : 'it'}`))
  return ordered.filter((c) => {
    if (isCname(c) === keepsCname) return true
    report?.dropped(c, { kind: 'cname', by: (keepsCname ? cname : (other ?? c)).place })
    return false
  })
}

/** `other`: undefined = the CNAME is at the apex, and nothing else is. */
function describe(cname: Contribution, other: Contribution | undefined): string {
  if (other === undefined) return `CNAME (${cname.place}) beside the SOA`
  const type = printType(other.endpoint.type)
  if (other.key === DEFAULT_KEY)
    return `CNAME (${cname.place}) beside the SOA and the default ${type}`
  return contrast(['CNAME', cname], [type, other], 'beside')
}

function isCname({ endpoint }: Contribution): boolean {
  return endpoint.type === RRType.CNAME
}
