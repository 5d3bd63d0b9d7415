import { type ApiObject, textOf } from '../../kube/api.ts'
import { RESOURCE } from '../../records/validate/fields.ts'
import { itemsOf, partOf } from './object-fields.ts'
import type { ObjectTargets } from './targets.ts'

/** The addresses and host names in `status.loadBalancer` of a Service or Ingress. */
export function loadBalancerTargets({ status }: ApiObject): ObjectTargets {
  const place = RESOURCE.at('status').at('loadBalancer').at('ingress')
  const entries = itemsOf(partOf(status, 'loadBalancer'), 'ingress')
  const texts = entries.flatMap((entry) => [textOf(entry, 'ip'), textOf(entry, 'hostname')])
  return { texts: texts.filter((text) => text !== ''), place }
}
