import { type ApiObject, isObject, textOf } from '../../kube/api.ts'
import { API_VERSION, type DnsRecord, recordKey } from '../../records/dns-record.ts'
import { type PackedRecord, packRecord } from '../../records/pack.ts'
import type { RecordOrigin } from '../../records/record-source.ts'
import type { RecordSettings } from '../../records/settings.ts'
import { outOf, SITES_ANNOTATION, type SitePart, scanSiteFacts } from '../../records/site-facts.ts'
import { validateResource } from '../../records/validate/resource.ts'
import { scanSettingTexts } from '../../records/validate/settings.ts'

/** One record to serve, and what is known of its addresses. */
export interface ExpandedRecord {
  readonly key: string
  readonly packed: PackedRecord
  readonly origin: RecordOrigin | undefined
  /** Key of the record of this site that it was derived from; undefined = none is known. */
  readonly original: string | undefined
  /** As in `StoredRecord`. */
  readonly heldSinceSeconds: number | undefined
  /** Addresses and host names that are down, with the reasons. */
  readonly down: Readonly<Record<string, string>>
}

/** Separates the key of an object and a site in the key of a record. No name of an object has it. */
const AT_SITE = '@'
/** Separates the key of an object, or that of a record, and a number. */
const NUMBERED = '~'

/**
 * Returns the records that an object stands for. An operator puts endpoints of several sites and owners into one
 * object; then each part is a record of its own, with its age, settings and health. `fault`: why the annotation that
 * describes the parts is not used; undefined = nothing is wrong. `record`: the valid content of the object.
 */
export function expandRecord(
  object: ApiObject,
  record: DnsRecord,
): { readonly records: readonly ExpandedRecord[]; readonly fault?: string } {
  const key = recordKey(record.namespace, record.name)
  const asOne: ExpandedRecord = {
    key,
    packed: packRecord(record),
    origin: undefined,
    original: undefined,
    heldSinceSeconds: undefined,
    down: {},
  }
  const { annotations } = isObject(object.metadata) ? object.metadata : {}
  const text = textOf(annotations, SITES_ANNOTATION)
  // Editors of ordinary records must not decide for other sites.
  if (text === '' || !record.isAggregate) return { records: [asOne] }
  const { endpoints } = isObject(object.spec) ? object.spec : {}
  const facts = scanSiteFacts(text, Array.isArray(endpoints) ? endpoints : [])
  if (typeof facts === 'string') return { records: [asOne], fault: facts }
  const records: ExpandedRecord[] = []
  const counts = new Map<string, number>()
  for (const [index, part] of facts.parts.entries()) {
    if (part.endpoints.length === 0) continue
    const content = validatePart(object, part)
    if (typeof content === 'string') {
      return { records: [asOne], fault: `parts[${index}] of ${part.site}: ${content}` }
    }
    const { site, name } = part
    const isOwn = site === facts.site
    const base = isOwn ? key : `${key}${AT_SITE}${site}`
    const count = (counts.get(base) ?? 0) + 1
    counts.set(base, count)
    records.push({
      key: count === 1 ? base : `${base}${NUMBERED}${count}`,
      packed: packRecord({ ...content, settings: joinSettings(record.settings, content.settings) }),
      origin: originOf(part),
      original: isOwn ? (name === '' ? key : recordKey(record.namespace, name)) : undefined,
      heldSinceSeconds: record.createdSeconds,
      down: outOf(part),
    })
  }
  return { records }
}

function originOf({ site, id, isUndated, isPartial }: SitePart): RecordOrigin {
  return { site, id, ...(isUndated ? { isUndated } : {}), ...(isPartial ? { isPartial } : {}) }
}

/** Validates the endpoints of a part as if the object had only these, and its settings. Returns what is wrong. */
function validatePart(object: ApiObject, part: SitePart): DnsRecord | string {
  const { createdSeconds, endpoints } = part
  const faults: string[] = []
  const settings = scanSettingTexts(
    (key) => part.settings[key],
    (key, problem) => faults.push(`${key} ${problem}`),
  )
  if (faults.length > 0) return faults[0]!
  const metadata = isObject(object.metadata) ? object.metadata : {}
  const spec = isObject(object.spec) ? object.spec : {}
  const created = createdSeconds === 0 ? '' : new Date(createdSeconds * 1000).toISOString()
  const resource = validateResource({
    apiVersion: API_VERSION,
    kind: 'DNSRecord',
    metadata: { ...metadata, annotations: {}, creationTimestamp: created },
    spec: { ...spec, endpoints },
  })
  if (resource.kind === 'record') return { ...resource.record, settings }
  return resource.kind === 'refused' ? resource.problem.message : 'is not a DNSRecord'
}

/** Settings of the object itself count for each part that has none of its own. */
function joinSettings(
  object: RecordSettings | undefined,
  part: RecordSettings | undefined,
): RecordSettings | undefined {
  if (object === undefined || part === undefined) return part ?? object
  return { ...object, ...part }
}
