import type { ApiObject } from '../../../kube/api.ts'
import type { RecordDocument } from '../../../records/record-document.ts'
import { type FieldProblem, RESOURCE, RefusedError } from '../../../records/validate/fields.ts'
import { SETTING_PREFIX } from '../../../records/validate/settings.ts'
import { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import { RecordsOfHost } from '../host-record.ts'
import type { ObjectProblem, ObjectReference } from '../object-kind.ts'
import { endpointsOf } from '../targets.ts'
import type { Gateway } from './parents.ts'
import type { GatewayRoute } from './route.ts'

const ADDRESSES = RESOURCE.at('status').at('addresses')

/** What the record of one host name of a Gateway is made from. */
interface HostParts {
  readonly gateway: Gateway
  readonly host: string
  /** The routes with the host name, the oldest first; at least one. */
  readonly routes: readonly GatewayRoute[]
  /** Addresses and host names of the Gateway, or of annotations; at least one. */
  readonly targets: readonly string[]
}

/** What one host name gives. */
interface HostResult {
  /** Undefined = its annotations are invalid. */
  readonly document: RecordDocument | undefined
  readonly problems: readonly ObjectProblem[]
}

/** Makes the record of a host name. */
export function makeHost({ gateway, host, routes, targets }: HostParts): HostResult {
  const problems: ObjectProblem[] = []
  const { annotations, holders } = joinAnnotations(gateway, routes)
  const noteProblem = (problem: FieldProblem): void => {
    const of = holders.get(String(problem.path.at(-1))) ?? gateway.of
    problems.push({ ...problem, of })
  }
  const object: ApiObject = {
    metadata: { ...gateway.metadata, creationTimestamp: ageOf(gateway, routes), annotations },
  }
  try {
    const externalDns = new ExternalDnsAnnotations(object)
    const records = new RecordsOfHost('gateway', object, externalDns, noteProblem)
    const endpoints = endpointsOf(host, { texts: targets, place: ADDRESSES }, noteProblem)
    return { document: records.make(host, endpoints), problems }
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    noteProblem(error.problem)
    return { document: undefined, problems }
  }
}

/**
 * Returns the annotations that count for a host name: those of its oldest route come first, then those of younger ones,
 * then the settings of the Gateway. `holders`: the object of each of them.
 */
function joinAnnotations(
  gateway: Gateway,
  routes: readonly GatewayRoute[],
): {
  readonly annotations: ApiObject
  readonly holders: ReadonlyMap<string, ObjectReference>
} {
  const own = Object.entries(gateway.annotations).filter(([name]) =>
    name.startsWith(SETTING_PREFIX),
  )
  const annotations = Object.fromEntries(own)
  const holders = new Map(own.map(([name]) => [name, gateway.of]))
  for (const route of [...routes].reverse()) {
    for (const [name, value] of Object.entries(route.annotations)) {
      annotations[name] = value
      holders.set(name, route.of)
    }
  }
  return { annotations, holders }
}

/** Returns when the Gateway got the host name at the earliest. */
function ageOf(gateway: Gateway, [oldest]: readonly GatewayRoute[]): string {
  return [gateway.created, oldest?.created ?? ''].sort().at(-1)!
}
