import { type ApiObject, textOf } from '../../../kube/api.ts'
import type { RecordDocument } from '../../../records/record-document.ts'
import {
  type FieldPlace,
  type FieldProblem,
  quote,
  RefusedError,
  SPEC,
} from '../../../records/validate/fields.ts'
import { ExternalDnsAnnotations, placeOf } from '../external-dns-annotations.ts'
import { hostRecord } from '../host-record.ts'
import { loadBalancerTargets } from '../load-balancer.ts'
import { itemsOf, textsOf } from '../object-fields.ts'
import { readObjectSettings } from '../settings-annotations.ts'
import { checkHost, endpointsOf, type Targets } from '../targets.ts'

/** The annotation that says which host names count. */
const HOSTNAME_SOURCE = 'ingress-hostname-source'
const ANNOTATION_ONLY = 'annotation-only'
const DEFINED_HOSTS_ONLY = 'defined-hosts-only'

/** Makes the records of an Ingress, one for each host. Throws RefusedError. */
export function readIngress(
  object: ApiObject,
  onProblem: (problem: FieldProblem) => void,
): readonly RecordDocument[] {
  const externalDns = new ExternalDnsAnnotations(object)
  if (externalDns.isOfOther) return []
  const hosts = new Set<string>()
  for (const [text, place] of hostTexts(object, externalDns)) hosts.add(checkHost(text, place))
  if (hosts.size === 0) return []
  for (const problem of externalDns.problems) onProblem(problem)
  const settings = readObjectSettings(object, externalDns, onProblem)
  const ttlSeconds = externalDns.ttlSeconds()
  const targets = targetsOf(object, externalDns)
  if (targets.texts.length === 0) {
    throw new RefusedError(targets.place, 'the Ingress has no address yet')
  }
  return [...hosts].map((host) => {
    const endpoints = endpointsOf(host, targets, onProblem)
    const parts = { word: 'ingress', object, host, endpoints, ttlSeconds, settings }
    return hostRecord(parts, onProblem)
  })
}

function targetsOf(object: ApiObject, externalDns: ExternalDnsAnnotations): Targets {
  const texts = externalDns.list('target')
  if (texts.length > 0) return { texts, place: placeOf(externalDns.nameOf('target')) }
  return loadBalancerTargets(object)
}

/** Yields the host names of the rules, of the certificates and of the annotation, each with its place. */
function* hostTexts(
  { spec }: ApiObject,
  externalDns: ExternalDnsAnnotations,
): Generator<readonly [string, FieldPlace]> {
  const source = externalDns.text(HOSTNAME_SOURCE)?.toLowerCase()
  if (source !== undefined && source !== ANNOTATION_ONLY && source !== DEFINED_HOSTS_ONLY) {
    const name = externalDns.nameOf(HOSTNAME_SOURCE)
    const message = `${name} must be ${ANNOTATION_ONLY} or ${DEFINED_HOSTS_ONLY}, got ${quote(source)}`
    throw new RefusedError(placeOf(name), message)
  }
  if (source !== ANNOTATION_ONLY) {
    for (const [index, rule] of itemsOf(spec, 'rules').entries()) {
      const host = textOf(rule, 'host')
      if (host !== '') yield [host, SPEC.at('rules').at(index).at('host')]
    }
    for (const [index, tls] of itemsOf(spec, 'tls').entries()) {
      const place = SPEC.at('tls').at(index).at('hosts')
      for (const [at, host] of textsOf(tls, 'hosts').entries()) {
        if (host !== '') yield [host, place.at(at)]
      }
    }
  }
  if (source === DEFINED_HOSTS_ONLY) return
  const place = placeOf(externalDns.nameOf('hostname'))
  for (const host of externalDns.list('hostname')) yield [host, place]
}
