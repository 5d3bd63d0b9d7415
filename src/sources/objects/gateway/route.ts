import { type ApiObject, textOf } from '../../../kube/api.ts'
import { quote } from '../../../records/validate/fields.ts'
import {
  ANNOTATION_ONLY,
  annotationsOf,
  DEFINED_HOSTS_ONLY,
  ExternalDnsAnnotations,
} from '../external-dns-annotations.ts'
import { textsOf } from '../object-fields.ts'
import type { ObjectProblem, ObjectReference } from '../object-kind.ts'
import { referenceOf } from '../object-reference.ts'
import { type ParentKey, type ReportedSection, readParents } from './attachment.ts'
import { scanHostName } from './host-names.ts'

/** A route, as far as its host names need it. */
export interface GatewayRoute {
  readonly of: ObjectReference
  readonly created: string
  /** Valid host names; '' = those of its listeners. */
  readonly hosts: readonly string[]
  /** The parents that its spec names. */
  readonly parents: ReadonlySet<ParentKey>
  readonly reported: readonly ReportedSection[]
  readonly annotations: ApiObject
  /** What is wrong with its host names. */
  readonly problems: readonly ObjectProblem[]
}

/** Reads a route. A route that another controller is responsible for has no host names. */
export function readRoute(object: ApiObject): GatewayRoute {
  const of = referenceOf(object)
  const externalDns = new ExternalDnsAnnotations(object)
  const hosts = new Set<string>()
  const problems: ObjectProblem[] = externalDns.problems.map((one) => ({ ...one, of }))
  const annotated = externalDns.validList('hostname', (one) => problems.push({ ...one, of }))
  const found = externalDns.isOfOther ? [] : namesOf(object, externalDns, annotated)
  for (const { text, path } of found) {
    const host = scanHostName(text)
    if (host !== undefined) hosts.add(host)
    else problems.push({ of, path, message: `${quote(text)} is not a DNS name; it is not served` })
  }
  return {
    of,
    created: textOf(object.metadata, 'creationTimestamp'),
    hosts: [...hosts],
    ...readParents(object),
    annotations: annotationsOf(object),
    problems,
  }
}

interface FoundName {
  readonly text: string
  readonly path: ObjectProblem['path']
}

/** As external-dns: names of the spec, then of the annotation, and those of listeners if the spec has none. */
function namesOf(
  object: ApiObject,
  externalDns: ExternalDnsAnnotations,
  hosts: readonly string[],
): FoundName[] {
  const defined = textsOf(object.spec, 'hostnames').map((text, index): FoundName => {
    return { text, path: ['spec', 'hostnames', index] }
  })
  const path = externalDns.placeOf('hostname').path()
  const annotated = hosts.map((text): FoundName => ({ text, path }))
  const ofListeners = defined.length === 0 ? [{ text: '', path: [] }] : []
  switch (externalDns.text('gateway-hostname-source')?.toLowerCase()) {
    case ANNOTATION_ONLY:
      return annotated
    case DEFINED_HOSTS_ONLY:
      return defined
    default:
      return [...defined, ...annotated, ...ofListeners]
  }
}
