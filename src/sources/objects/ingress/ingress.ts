import { type ApiObject, textOf } from '../../../kube/api.ts'
import type { RecordDocument } from '../../../records/record-document.ts'
import { type FieldPlace, RefusedError, SPEC } from '../../../records/validate/fields.ts'
import {
  ANNOTATION_ONLY,
  DEFINED_HOSTS_ONLY,
  ExternalDnsAnnotations,
} from '../external-dns-annotations.ts'
import { RecordsOfHost } from '../host-record.ts'
import { loadBalancerTargets } from '../load-balancer.ts'
import { itemsOf, textsOf } from '../object-fields.ts'
import type { OnProblem } from '../object-kind.ts'
import { checkHost, endpointsOf } from '../targets.ts'

/** The annotation that selects which host names count. */
const HOSTNAME_SOURCE = 'ingress-hostname-source'

/** Makes the records of an Ingress, one for each host. Throws RefusedError. */
export function readIngress(object: ApiObject, onProblem: OnProblem): readonly RecordDocument[] {
  const externalDns = new ExternalDnsAnnotations(object)
  if (externalDns.isOfOther) return []
  const hosts = new Set<string>()
  for (const [text, place] of hostTexts(object, externalDns)) hosts.add(checkHost(text, place))
  if (hosts.size === 0) return []
  for (const problem of externalDns.problems) onProblem(problem)
  const records = new RecordsOfHost('ingress', object, externalDns, onProblem)
  const targets = externalDns.targets() ?? loadBalancerTargets(object)
  if (targets.texts.length === 0) {
    throw new RefusedError(targets.place, 'the Ingress has no address yet')
  }
  return [...hosts].map((host) => records.make(host, endpointsOf(host, targets, onProblem)))
}

/** Yields the host names of the rules, of the certificates and of the annotation, each with its place. */
function* hostTexts(
  { spec }: ApiObject,
  externalDns: ExternalDnsAnnotations,
): Generator<readonly [string, FieldPlace]> {
  const text = externalDns.text(HOSTNAME_SOURCE)?.toLowerCase()
  const source = externalDns.choice(HOSTNAME_SOURCE, [ANNOTATION_ONLY, DEFINED_HOSTS_ONLY], text)
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
  const place = externalDns.placeOf('hostname')
  for (const host of externalDns.list('hostname')) yield [host, place]
}
