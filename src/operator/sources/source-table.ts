import { isDeepStrictEqual } from 'node:util'
import type { ApiObject } from '../../kube/api.ts'
import type { DnsRecord } from '../../records/dns-record.ts'
import type { RecordDocument } from '../../records/record-document.ts'
import type { FieldProblem } from '../../records/validate/fields.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { validateResource } from '../../records/validate/resource.ts'
import type { ObjectRecords, ObjectReference } from '../../sources/objects/object-kind.ts'

type ObjectIdentity = Pick<ObjectReference, 'kind' | 'namespace' | 'name'>

/** A DNSRecord that an object asks for. */
export interface SourceRecord {
  /** `namespace/name` of the DNSRecord. */
  readonly key: string
  readonly of: ObjectReference
  /** The last valid one; undefined = none is known. */
  readonly valid: ValidDocument | undefined
  /** Why the newest document is invalid; undefined = it is valid. */
  readonly problem: FieldProblem | undefined
}

/** A document, and what it was read as. */
export interface ValidDocument {
  readonly document: RecordDocument
  readonly content: DnsRecord
}

/** The DNSRecords that objects ask for, by object, DNSRecord, host and namespace. */
export class SourceTable {
  readonly #records = new Map<string, SourceRecord>()
  /** Keys of DNSRecords by object. */
  readonly #objects = new Map<string, ReadonlySet<string>>()
  readonly #hosts = new Map<string, Set<string>>()
  readonly #namespaces = new Map<string, Set<string>>()

  /** All DNSRecords that objects ask for. */
  records(): Iterable<SourceRecord> {
    return this.#records.values()
  }

  get(key: string): SourceRecord | undefined {
    return this.#records.get(key)
  }

  /** Keys of the DNSRecords that an object asks for; undefined = the object is not known. */
  of(object: ObjectIdentity): ReadonlySet<string> | undefined {
    return this.#objects.get(objectKey(object))
  }

  /** The valid DNSRecords of the host of `record`, with itself. */
  sharing(record: SourceRecord): readonly SourceRecord[] {
    const { valid } = record
    const keys = valid === undefined ? [] : (this.#hosts.get(hostOf(valid)) ?? [])
    return [...keys].map((key) => this.#records.get(key)!)
  }

  inNamespace(namespace: string): Iterable<string> {
    return this.#namespaces.get(namespace) ?? []
  }

  /**
   * Applies the state of an object. Returns the keys of the DNSRecords that it had or has, and of those of the same
   * hosts. `present`: its DNSRecords in the cluster, the last good ones of an object that was never valid here.
   */
  apply(
    { of, records, problems }: ObjectRecords,
    present: () => readonly RecordDocument[],
  ): ReadonlySet<string> {
    const id = objectKey(of)
    const before = this.#objects.get(id)
    if (records === undefined && before !== undefined) return new Set(before)
    const documents = records ?? present()
    const wanted = new Map(documents.map((one) => [`${of.namespace}/${one.metadata.name}`, one]))
    const touched = new Set([...(before ?? []), ...wanted.keys()])
    for (const key of [...touched]) {
      const document = wanted.get(key)
      const known = this.#records.get(key)
      const next = document && readDocument(key, of, document, known)
      if (isSameRecord(known, next)) continue
      for (const one of known === undefined ? [] : this.sharing(known)) touched.add(one.key)
      this.#set(key, known, next)
      for (const one of next === undefined ? [] : this.sharing(next)) touched.add(one.key)
    }
    // A removed object has neither; one without records may get some.
    if (wanted.size === 0 && problems.length === 0) this.#objects.delete(id)
    else this.#objects.set(id, new Set(wanted.keys()))
    return touched
  }

  #set(key: string, known: SourceRecord | undefined, next: SourceRecord | undefined): void {
    if (known?.valid !== undefined) drop(this.#hosts, hostOf(known.valid), key)
    if (known !== undefined) drop(this.#namespaces, known.of.namespace, key)
    if (next === undefined) {
      this.#records.delete(key)
      return
    }
    this.#records.set(key, next)
    add(this.#namespaces, next.of.namespace, key)
    if (next.valid !== undefined) add(this.#hosts, hostOf(next.valid), key)
  }
}

/** Validates a document. An invalid one leaves the last valid one of the same object in force. */
function readDocument(
  key: string,
  of: ObjectReference,
  document: RecordDocument,
  known: SourceRecord | undefined,
): SourceRecord {
  const { namespace } = of
  const placed = { ...document, metadata: { ...document.metadata, namespace } }
  const resource = validateResource(placed as unknown as ApiObject)
  if (resource.kind === 'record') {
    return { key, of, valid: { document: placed, content: resource.record }, problem: undefined }
  }
  const problem =
    resource.kind === 'refused' ? resource.problem : { path: [], message: 'is no DNSRecord' }
  return { key, of, valid: known?.of.uid === of.uid ? known.valid : undefined, problem }
}

function isSameRecord(a: SourceRecord | undefined, b: SourceRecord | undefined): boolean {
  if (a === undefined || b === undefined) return a === b
  return (
    a.of.uid === b.of.uid &&
    a.problem?.message === b.problem?.message &&
    isDeepStrictEqual(a.valid?.document, b.valid?.document)
  )
}

function objectKey({ kind, namespace, name }: ObjectIdentity): string {
  return `${kind} ${namespace}/${name}`
}

function hostOf({ content: { rootHost, isWildcardHost } }: ValidDocument): string {
  return `${isWildcardHost ? '*' : ''}${lowerNameKey(rootHost)}`
}

function add(index: Map<string, Set<string>>, name: string, key: string): void {
  const keys = index.get(name)
  if (keys === undefined) index.set(name, new Set([key]))
  else keys.add(key)
}

function drop(index: Map<string, Set<string>>, name: string, key: string): void {
  const keys = index.get(name)
  keys?.delete(key)
  if (keys?.size === 0) index.delete(name)
}
