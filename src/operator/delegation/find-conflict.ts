import { quote } from '../../records/validate/fields.ts'
import { normalizeName, type SpecEndpoint } from '../record/spec-endpoint.ts'
import type { EndpointState } from './endpoint-states.ts'

const CNAME = 'CNAME'

/** What the endpoints of a plan are compared with. */
interface PlanScope {
  readonly owner: string
  /** Without `*.`. */
  readonly host: string
  readonly endpointStates: readonly EndpointState[]
}

/**
 * Why our owner can't have the endpoint that it wants at `row`; '' = it can. The texts are those of
 * Kuadrant's operator.
 */
export function findConflict(
  desired: SpecEndpoint,
  endpointState: EndpointState,
  scope: PlanScope,
): string {
  if (endpointState.current !== undefined && endpointState.notes.size === 0) {
    return `owner conflict, cannot update endpoint '${show(desired.dnsName)}' with owner when existing endpoint is not owned`
  }
  const other = scope.endpointStates.find((r) => excludes(r, desired, scope.owner))
  if (other !== undefined) {
    const type = show(other.current!.recordType)
    return `record type conflict, cannot update endpoint '${show(desired.dnsName)}' with record type '${desired.recordType}' when endpoint already exists with record type '${type}'`
  }
  const target = desired.recordType === CNAME ? findMissing(desired.targets, scope) : undefined
  if (target === undefined) return ''
  return `invalid target, endpoint '${show(desired.dnsName)}' has target '${show(target)}' that matches the root host filters '[${scope.host}]' but does not exist in the list of local or remote endpoints`
}

/**
 * True if the two can't exist together: no other record may share the name of a CNAME (RFC 1034
 * section 3.6.2). An endpoint that only our owner has does not count, as it is replaced.
 */
function excludes(
  { current, notes }: EndpointState,
  desired: SpecEndpoint,
  owner: string,
): boolean {
  if (current === undefined || current.dnsName !== desired.dnsName) return false
  if ((current.recordType === CNAME) === (desired.recordType === CNAME)) return false
  return notes.size === 0 || [...notes.keys()].some((other) => other !== owner)
}

/** The first target inside the host that has no endpoint. */
function findMissing(
  targets: readonly string[],
  { host, endpointStates }: PlanScope,
): string | undefined {
  const names = new Set(
    endpointStates.map(
      (endpointState) => (endpointState.current ?? endpointState.desired)!.dnsName,
    ),
  )
  return targets.find((text) => {
    const target = normalizeName(text)
    if (target !== host && !target.endsWith(`.${host}`)) return false
    return !names.has(target) && !wildcardsOf(target, host).some((name) => names.has(name))
  })
}

/** Wildcards inside `host` that could match `name`. */
function wildcardsOf(name: string, host: string): string[] {
  const wildcards: string[] = []
  for (let rest = name; rest !== host && rest.includes('.'); ) {
    rest = rest.slice(rest.indexOf('.') + 1)
    wildcards.push(`*.${rest}`)
  }
  return wildcards
}

/** Quotes text of an object for a message, on one line. */
export function show(text: string): string {
  return quote(text).slice(1, -1)
}
