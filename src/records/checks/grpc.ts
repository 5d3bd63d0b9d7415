import { quote, RefusedError, stringField } from '../validate/fields.ts'
import type { CheckKind } from './check-kind.ts'

interface GrpcPart {
  /** The service; missing = the server as a whole. */
  readonly grpcService?: string
}

/** Package and name of a gRPC service. */
const GRPC_SERVICE = /^[\w.-]{1,255}$/

/** GRPC and GRPCS (with TLS), which call `grpc.health.v1.Health/Check`. An extension. */
export const GRPC_CHECK: CheckKind<GrpcPart> = {
  fields: ['service'],
  sendsHostName: true,
  scan: (spec, place) => {
    const grpcService = stringField(spec, 'service', place)
    if (grpcService === '') return {}
    if (GRPC_SERVICE.test(grpcService)) return { grpcService }
    const message = `service must be a name such as shop.v1.Cart, got ${quote(grpcService)}`
    throw new RefusedError(place.at('service'), message)
  },
}
