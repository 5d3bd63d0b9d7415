import { RRType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { printRecordType } from '../../records/print-endpoint.ts'
import { type BuildOptions, type Contribution, DEFAULT_KEY } from './owner-set.ts'
import { type Conflict, conflictAt, contrast } from './record-conflicts.ts'

/**
 * Returns the contributions without CNAME, or only those, because a name has either a CNAME or other
 * types (RFC 1034 section 3.6.2). The first record decides. `ordered`: at least one.
 */
export function settleCnames(
  owner: Uint8Array,
  ordered: readonly Contribution[],
  { isApex, report }: BuildOptions,
  conflicts: Conflict[],
): readonly Contribution[] {
  const cname = ordered.find(isCname)
  if (cname === undefined) return ordered
  const other = findOther(ordered)
  if (other === undefined && !isApex) return ordered
  const keepsCname = !isApex && isCname(ordered[0]!) && !isInsideOne(cname, other!)
  const yielding = keepsCname ? other! : cname
  const text = `${printName(owner)}: ${describe(cname, other)}: the CNAME is ${keepsCname ? '' : 'not '}served, because a CNAME must be alone`
  const isRecord = other !== undefined && other.key !== DEFAULT_KEY
  const fix = `delete ${isRecord ? 'one of them' : 'it'}`
  conflicts.push({ ...conflictAt(yielding, `${text}; ${fix}`), isFault: true })
  return ordered.filter((c) => {
    if (isCname(c) === keepsCname) return true
    report?.dropped(c, { kind: 'cname', by: (keepsCname ? cname : (other ?? c)).place })
    return false
  })
}

/** Returns the first record's endpoint of another type; of several types there, the lowest. */
function findOther(ordered: readonly Contribution[]): Contribution | undefined {
  let found: Contribution | undefined
  for (const one of ordered) {
    if (isCname(one)) continue
    const isLower = found?.key === one.key && one.endpoint.type < found.endpoint.type
    if (found === undefined || isLower) found = one
  }
  return found
}

/** True if a record of a site has both: other sites do not know their order. The other types are served then. */
function isInsideOne(cname: Contribution, other: Contribution): boolean {
  return cname.key === other.key && cname.site !== ''
}

/** `other`: undefined = the CNAME is at the apex, and nothing else is. */
function describe(cname: Contribution, other: Contribution | undefined): string {
  if (other === undefined) return `CNAME (${cname.place}) beside the SOA`
  const type = printRecordType(other.endpoint.type)
  if (other.key === DEFAULT_KEY)
    return `CNAME (${cname.place}) beside the SOA and the default ${type}`
  return contrast(['CNAME', cname], [type, other], 'beside')
}

function isCname({ endpoint }: Contribution): boolean {
  return endpoint.type === RRType.CNAME
}
