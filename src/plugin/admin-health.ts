import type { EndpointPage, EndpointQuery } from '../base/telemetry/endpoint-lists.ts'

export type {
  EndpointPage,
  EndpointQuery,
  EndpointReport,
} from '../base/telemetry/endpoint-lists.ts'

/** The endpoints of a server with their states. */
export interface AdminHealth {
  /** Resolves to a page of endpoints; undefined = too many requests wait. */
  list(query: EndpointQuery): Promise<EndpointPage | undefined>
}
