import type { Clock } from '../../base/clock.ts'
import type { ReadHeaders } from '../../health/probes/prober.ts'
import { ApiError, isObject, textOf } from '../../kube/api.ts'
import type { Objects } from '../../kube/objects.ts'
import { labelOf } from '../record/fields.ts'
import { SECRETS } from '../record/resources.ts'

/**
 * Secret types without a specific meaning. Other types hold credentials for other systems: any user
 * who may write records could have them sent to an address of that user's choice.
 */
const HEADER_TYPES: ReadonlySet<string> = new Set(['', 'Opaque'])
/**
 * The owner of a Secret opts in with this label: `true` = for encrypted health checks, `plain` = also for others.
 * Otherwise any author of records in the namespace could read all Secrets of these types.
 */
const HEADERS_LABEL = 'sextant.io/health-check-headers'
/** Milliseconds after which a Secret is read again. */
const KEPT_MS = 60_000
const KEPT_MAX = 1000
const HEADERS_MAX = 100

type Headers = Awaited<ReturnType<ReadHeaders>>

/**
 * Reads Secrets of type Opaque with headers for probes: each key is the name of a header. Never
 * rejects. Only Secrets with the label are read.
 */
export function headerSecrets(objects: Pick<Objects, 'get'>, clock: Clock): ReadHeaders {
  const kept = new Map<string, { readonly untilMs: number; readonly headers: Promise<Headers> }>()
  return (namespace, name, isEncrypted) => {
    const key = `${namespace}/${name} ${isEncrypted}`
    const known = kept.get(key)
    const nowMs = clock.monotonic()
    if (known !== undefined && nowMs < known.untilMs) return known.headers
    if (kept.size >= KEPT_MAX) kept.clear()
    const headers = read(objects, { namespace, name }, isEncrypted)
    kept.set(key, { untilMs: nowMs + KEPT_MS, headers })
    return headers
  }
}

async function read(
  objects: Pick<Objects, 'get'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  isEncrypted: boolean,
): Promise<Headers> {
  try {
    const secret = await objects.get({ resource: SECRETS, namespace, name })
    if (secret === undefined) return `is missing in namespace ${namespace}`
    const type = textOf(secret, 'type')
    if (!HEADER_TYPES.has(type)) return `has the type ${type}; only Opaque is allowed`
    const label = labelOf(secret, HEADERS_LABEL)
    if (label !== 'true' && label !== 'plain')
      return `has not opted in; set its label ${HEADERS_LABEL}: "true"`
    if (label === 'true' && !isEncrypted)
      return `is sent over HTTPS or GRPCS only; set its label ${HEADERS_LABEL} to "plain" to send it in clear text`
    const data = isObject(secret.data) ? secret.data : {}
    const entries = Object.entries(data).slice(0, HEADERS_MAX)
    return new Map(
      entries.map(([header, value]) => {
        return [header, Buffer.from(String(value), 'base64').toString('utf8').trim()]
      }),
    )
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.status === 403
      ? `may not be read: this operator needs the permission to get Secrets in namespace ${namespace}`
      : `cannot be read: ${error.message}`
  }
}
