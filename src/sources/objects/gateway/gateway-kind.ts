import type { ObjectKind, ObjectResource } from '../object-kind.ts'
import { GATEWAY_GROUP } from './attachment.ts'
import { GatewayReader } from './gateway-reader.ts'

function resource(
  kind: string,
  plural: string,
  equalVersions: readonly string[] = [],
): ObjectResource {
  return { group: GATEWAY_GROUP, version: 'v1', equalVersions, plural, kind }
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
