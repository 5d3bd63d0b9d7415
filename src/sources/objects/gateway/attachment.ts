import { type ApiObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { itemsOf, partOf } from '../object-fields.ts'

export const GATEWAY_GROUP = 'gateway.networking.k8s.io'

/** A Gateway or a ListenerSet, as parents of routes are named: `Gateway apps/shop`. */
export type ParentKey = string

/** The listeners of a parent that a route selects. */
export interface ParentSection {
  readonly parent: ParentKey
  /** '' = all. */
  readonly sectionName: string
  /** Undefined = all. */
  readonly port: number | undefined
}

/** A section that the controller of the parent reported about. */
export interface ReportedSection extends ParentSection {
  /** Undefined = not known yet. */
  readonly isAccepted: boolean | undefined
  /** Why it is not accepted. */
  readonly reason: string
}

type ConditionStatus = 'True' | 'False' | 'Unknown'

interface ObjectCondition {
  readonly status: ConditionStatus
  readonly message: string
}

/** Returns a condition of a status; undefined = it is missing. */
export function findCondition(
  status: JsonValue | undefined,
  type: string,
): ObjectCondition | undefined {
  const found = itemsOf(status, 'conditions').find((one) => textOf(one, 'type') === type)
  if (found === undefined) return undefined
  const status_ = textOf(found, 'status')
  const message = [textOf(found, 'reason'), textOf(found, 'message')].filter((text) => text !== '')
  return {
    status: status_ === 'True' || status_ === 'False' ? status_ : 'Unknown',
    message: message.join(': '),
  }
}

/** Returns the parents that the spec of a route names, and what their controllers reported. */
export function readParents(route: ApiObject): {
  readonly parents: ReadonlySet<ParentKey>
  readonly reported: readonly ReportedSection[]
} {
  const namespace = textOf(route.metadata, 'namespace')
  const named = itemsOf(route.spec, 'parentRefs').map((ref) => sectionOf(ref, namespace).parent)
  const parents = new Set(named.filter((parent) => parent !== ''))
  const reported = itemsOf(route.status, 'parents').flatMap((one): ReportedSection[] => {
    const section = sectionOf(partOf(one, 'parentRef'), namespace)
    // A controller may have left the report about a parent that was removed.
    if (!parents.has(section.parent)) return []
    const accepted = findCondition(one, 'Accepted')
    const isKnown = accepted !== undefined && accepted.status !== 'Unknown'
    const isAccepted = isKnown ? accepted.status === 'True' : undefined
    return [{ ...section, isAccepted, reason: accepted?.message ?? '' }]
  })
  return { parents, reported }
}

/** Returns '' as the parent if it is of another kind. */
function sectionOf(ref: ApiObject, namespace: string): ParentSection {
  const [group, kind] = [ref.group ?? GATEWAY_GROUP, textOf(ref, 'kind') || 'Gateway']
  const isKnown = group === GATEWAY_GROUP && (kind === 'Gateway' || kind === 'ListenerSet')
  return {
    parent: isKnown
      ? `${kind} ${textOf(ref, 'namespace') || namespace}/${textOf(ref, 'name')}`
      : '',
    sectionName: textOf(ref, 'sectionName'),
    port: typeof ref.port === 'number' ? ref.port : undefined,
  }
}
