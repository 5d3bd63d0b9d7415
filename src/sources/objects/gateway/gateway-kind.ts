import type { ObjectKind, ObjectResource } from '../object-kind.ts'
import { GatewayReader } from './gateway-reader.ts'

const GROUP = 'gateway.networking.k8s.io'

function resource(
  kind: string,
  plural: string,
  equalVersions: readonly string[] = [],
): ObjectResource {
  return { group: GROUP, version: 'v1', equalVersions, plural, kind }
}

/** Gateways with the host names of their routes. */
export const GATEWAY: ObjectKind = {
  word: 'gateway',
  resources: [
    resource('Gateway', 'gateways'),
    resource('ListenerSet', 'listenersets'),
    resource('HTTPRoute', 'httproutes'),
    resource('GRPCRoute', 'grpcroutes'),
    resource('TLSRoute', 'tlsroutes', ['v1alpha3', 'v1alpha2']),
  ],
  open: () => new GatewayReader(),
}
