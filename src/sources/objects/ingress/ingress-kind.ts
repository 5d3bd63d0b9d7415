import type { ObjectKind } from '../object-kind.ts'
import { SingleReader } from '../single-reader.ts'
import { readIngress } from './ingress.ts'

/** Ingresses, with the host names of their rules. */
export const INGRESS: ObjectKind = {
  word: 'ingress',
  resources: [{ group: 'networking.k8s.io', version: 'v1', plural: 'ingresses', kind: 'Ingress' }],
  open: () => new SingleReader(readIngress),
}
