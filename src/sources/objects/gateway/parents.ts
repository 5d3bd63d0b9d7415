import { scanAddress } from '../../../dns/text/address.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import { quote } from '../../../records/validate/fields.ts'
import { annotationsOf, ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { itemsOf, partOf } from '../object-fields.ts'
import type { ObjectProblem, ObjectReference } from '../object-kind.ts'
import { referenceOf } from '../object-reference.ts'
import { findCondition, type ParentKey } from './attachment.ts'
import { type GatewayListener, readListeners } from './listeners.ts'

/** What routes are attached to: a Gateway, or a ListenerSet of one. */
export interface Parent {
  readonly key: ParentKey
  readonly of: ObjectReference
  readonly listeners: readonly GatewayListener[]
  /** ObjectTargets that an annotation gives in place of the addresses; empty = none. */
  readonly targets: readonly string[]
  /** False: another controller is responsible for it. */
  readonly isOurs: boolean
}

export interface Gateway extends Parent {
  readonly metadata: ApiObject
  readonly created: string
  readonly annotations: ApiObject
  /** Addresses and host names. */
  readonly addresses: readonly string[]
  /** What is wrong with them. */
  readonly problems: readonly ObjectProblem[]
  /** Why nothing of it can be served now; undefined = it can. */
  readonly refusal: ObjectProblem | undefined
}

export interface SetOfListeners extends Parent {
  /** `namespace/name` of its Gateway. */
  readonly gateway: string
}

export function readGateway(object: ApiObject): Gateway {
  const of = referenceOf(object)
  const problems: ObjectProblem[] = []
  const addresses = itemsOf(object.status, 'addresses').flatMap((address, index) => {
    const [type, value] = [textOf(address, 'type') || 'IPAddress', textOf(address, 'value')]
    const isAddress = scanAddress(value) !== undefined
    if (type === 'IPAddress' ? isAddress : type === 'Hostname' && !isAddress) return [value]
    const message = `${quote(value)} of type ${type} is neither an IP address nor a host name; it is not served`
    problems.push({ of, path: ['status', 'addresses', index], message })
    return []
  })
  const parent = readParent(object, of, false, problems)
  return {
    ...parent,
    metadata: partOf(object, 'metadata'),
    created: textOf(object.metadata, 'creationTimestamp'),
    annotations: annotationsOf(object),
    addresses,
    problems,
    refusal: refusalOf(object, of, parent.targets.length > 0 || addresses.length > 0),
  }
}

/** Reads a ListenerSet. One that its Gateway did not accept has no listeners. */
export function readListenerSet(object: ApiObject): SetOfListeners {
  const of = referenceOf(object)
  const ref = partOf(object.spec, 'parentRef')
  const isAccepted = findCondition(object.status, 'Accepted')?.status === 'True'
  const parent = readParent(object, of, true, [])
  return {
    ...parent,
    listeners: isAccepted ? parent.listeners : [],
    gateway: `${textOf(ref, 'namespace') || of.namespace}/${textOf(ref, 'name')}`,
  }
}

function readParent(
  object: ApiObject,
  of: ObjectReference,
  needsStatus: boolean,
  problems: ObjectProblem[],
): Parent {
  const externalDns = new ExternalDnsAnnotations(object)
  return {
    key: `${of.kind} ${of.namespace}/${of.name}`,
    of,
    listeners: readListeners(object, needsStatus),
    targets: externalDns.validList('target', (one) => problems.push({ ...one, of })),
    isOurs: !externalDns.isOfOther,
  }
}

function refusalOf(
  { status }: ApiObject,
  of: ObjectReference,
  hasTargets: boolean,
): ObjectProblem | undefined {
  const accepted = findCondition(status, 'Accepted')
  if (accepted?.status !== 'True') {
    const why = accepted === undefined || accepted.message === '' ? '' : `: ${accepted.message}`
    return { of, path: ['status', 'conditions'], message: `the Gateway is not accepted${why}` }
  }
  if (hasTargets) return undefined
  return { of, path: ['status', 'addresses'], message: 'the Gateway has no address yet' }
}
