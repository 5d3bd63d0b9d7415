import { type ApiObject, isObject } from '../../kube/api.ts'
import type { RecordDocument } from '../../records/record-document.ts'
import { SETTING_NAMES } from '../../records/validate/settings.ts'
import type { ObjectReference } from '../../sources/objects/object-kind.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from '../record/fields.ts'
import { SOURCE_LABEL } from '../record/labels.ts'
import type { DnsRecordView } from '../record/record-view.ts'

/** A DNSRecord as it is written for an object. */
interface WantedRecord {
  /** Of the kind. */
  readonly word: string
  readonly of: ObjectReference
  readonly document: RecordDocument
}

export type SourceWrite =
  | { readonly kind: 'create'; readonly object: ApiObject }
  /** `patch`: a JSON merge patch. */
  | { readonly kind: 'patch'; readonly patch: ApiObject }
  | { readonly kind: 'delete'; readonly uid: string; readonly resourceVersion: string }
  | { readonly kind: 'none' }
  /** Another program has written a DNSRecord of this name. */
  | { readonly kind: 'foreign' }

const NONE: SourceWrite = { kind: 'none' }

/** Of a health check, by the definition of DNSRecord. */
const CHECK_DEFAULTS: ApiObject = {
  port: 443,
  protocol: 'HTTPS',
  interval: '5m',
  failureThreshold: 5,
}

/** Plans the write that makes a DNSRecord what its object asks for. `existing`: undefined = it does not exist. */
export function planWanted(wanted: WantedRecord, existing: DnsRecordView | undefined): SourceWrite {
  if (existing === undefined) return planCreate(wanted)
  if (!isWrittenFor(wanted, existing)) return { kind: 'foreign' }
  // It is made again when it is gone.
  if (existing.isDeleting) return NONE
  // The root host is immutable.
  if (existing.rootHost !== wanted.document.spec.rootHost) return planDelete(existing)
  const metadata = metadataChange(wanted, existing)
  const spec = withDefaults(printSpec(wanted))
  const isSpecSame = isSame(withDefaults(existing.spec), spec)
  if (metadata === undefined && isSpecSame) return NONE
  const patch = {
    metadata: { uid: existing.uid, ...metadata },
    ...(isSpecSame ? {} : { spec: mergePatch(existing.spec, spec) }),
  }
  return { kind: 'patch', patch }
}

/** Plans the removal of a DNSRecord that was written for an object. */
export function planUnwanted(existing: DnsRecordView): SourceWrite {
  return existing.isDeleting ? NONE : planDelete(existing)
}

/** The kind and uid of the object that a DNSRecord was written for, if its label says that it is one of `words`. */
export function sourceOf(
  { object }: DnsRecordView,
  kindOf: (word: string) => string | undefined,
): { readonly word: string; readonly uid: string; readonly name: string } | undefined {
  const word = mappingOf(metadataOf(object), 'labels')[SOURCE_LABEL]
  if (typeof word !== 'string') return undefined
  const kind = kindOf(word)
  const owner = itemsOf(metadataOf(object), 'ownerReferences').find((one) => one.kind === kind)
  if (kind === undefined || owner === undefined) return undefined
  return { word, uid: String(owner.uid), name: String(owner.name) }
}

/** Returns a DNSRecord that was written for an object as its document. */
export function documentOf(record: DnsRecordView): RecordDocument {
  const { object, name, namespace, created, spec } = record
  const { rootHost, endpoints, healthCheck } = spec
  const { annotations } = metadataOf(object)
  const settings = Object.entries(isObject(annotations) ? annotations : {}).filter(([name]) =>
    SETTING_NAMES.includes(name),
  )
  // Validated before use.
  return {
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: {
      name,
      namespace,
      creationTimestamp: created,
      annotations: Object.fromEntries(settings),
    },
    spec: { rootHost, endpoints, ...(healthCheck === undefined ? {} : { healthCheck }) },
  } as unknown as RecordDocument
}

export function isWrittenFor(
  { word, of }: Pick<WantedRecord, 'word' | 'of'>,
  existing: DnsRecordView,
): boolean {
  const owners = existing.ownerReferences
  return (
    existing.label(SOURCE_LABEL) === word &&
    owners.some(({ kind, name }) => kind === of.kind && name === of.name)
  )
}

function planDelete({ uid, resourceVersion }: DnsRecordView): SourceWrite {
  return { kind: 'delete', uid, resourceVersion }
}

function planCreate(wanted: WantedRecord): SourceWrite {
  const { apiVersion, kind, metadata } = wanted.document
  const { annotations = {} } = metadata
  const object = {
    apiVersion,
    kind,
    metadata: {
      name: metadata.name,
      namespace: wanted.of.namespace,
      labels: { [SOURCE_LABEL]: wanted.word },
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ownerReferences: [ownerOf(wanted.of)],
    },
    spec: printSpec(wanted),
  }
  return { kind: 'create', object }
}

/** In the form of the API: without fields that are undefined. */
function printSpec({ document }: WantedRecord): ApiObject {
  return JSON.parse(JSON.stringify(document.spec)) as ApiObject
}

function ownerOf({ apiVersion, kind, name, uid }: ObjectReference): ApiObject {
  return { apiVersion, kind, name, uid }
}

/** The changed parts of the metadata; undefined = none. Settings that the object does not have are removed. */
function metadataChange(
  { of, document }: WantedRecord,
  existing: DnsRecordView,
): ApiObject | undefined {
  const { annotations = {} } = document.metadata
  const names = new Set([...SETTING_NAMES, ...Object.keys(annotations)])
  const changed = [...names].filter(
    (name) => existing.annotation(name) !== (annotations[name] ?? ''),
  )
  const owners = itemsOf(metadataOf(existing.object), 'ownerReferences')
  const isOwned = owners.some(({ uid }) => uid === of.uid)
  if (isOwned && changed.length === 0) return undefined
  const others = owners.filter(({ kind, name }) => kind !== of.kind || name !== of.name)
  return {
    ...(changed.length === 0
      ? {}
      : {
          annotations: Object.fromEntries(changed.map((name) => [name, annotations[name] ?? null])),
        }),
    ...(isOwned ? {} : { ownerReferences: [...others, ownerOf(of)] }),
  }
}

/** Adds what the API server adds. */
function withDefaults(spec: ApiObject): ApiObject {
  const { healthCheck } = spec
  return isObject(healthCheck)
    ? { ...spec, healthCheck: { ...CHECK_DEFAULTS, ...healthCheck } }
    : spec
}

/** Returns the JSON merge patch (RFC 7396) from one mapping to another. */
function mergePatch(from: ApiObject, to: ApiObject): ApiObject {
  const gone = Object.keys(from).filter((key) => to[key] === undefined)
  const changed = Object.entries(to).flatMap(([key, value]) => {
    const before = from[key]
    if (isSame(before, value)) return []
    const isNested = isObject(before) && isObject(value)
    return [[key, isNested ? mergePatch(before, value) : value] as const]
  })
  return Object.fromEntries([...gone.map((key) => [key, null] as const), ...changed])
}
