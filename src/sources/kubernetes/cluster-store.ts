import { InputError } from '../../base/errors.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup, ProblemText } from '../../base/telemetry/problems.ts'
import type { AddressHealth } from '../../health/address-health.ts'
import { Findings } from '../../health/findings.ts'
import type { ApiObject } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import { API_VERSION, type DnsRecord, recordKey } from '../../records/dns-record.ts'
import { objectRecordKey } from '../../records/object-record-key.ts'
import { packRecord } from '../../records/pack.ts'
import type { RecordDocument } from '../../records/record-document.ts'
import { isSameOrigin, type RecordChange, StoredRecord } from '../../records/record-source.ts'
import { SITES_ANNOTATION } from '../../records/site-facts.ts'
import { type FieldProblem, printPath } from '../../records/validate/fields.ts'
import { findIgnored } from '../../records/validate/ignored.ts'
import { SERVED, validateResource } from '../../records/validate/resource.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import { IgnoredIndex } from '../ignored-index.ts'
import { IgnoredLog } from '../ignored-log.ts'
import type { ObjectProblem, ObjectRecords, ObjectReference } from '../objects/object-kind.ts'
import { type ExpandedRecord, expandRecord } from './expand-record.ts'
import { ObjectProblems } from './object-problems.ts'
import { CLUSTER_PLACE } from './place.ts'

/** The kinds that this server reads, by their plural in the API. */
const KINDS = {
  dnsrecords: 'DNSRecord',
  dnshealthcheckprobes: 'DNSHealthCheckProbe',
} as const
export type Plural = keyof typeof KINDS

const NO_RECORDS: readonly ExpandedRecord[] = []
/**
 * Added to the age of objects that are not DNSRecords. Their authors can give an old object a new host at any time, so
 * between namespaces, their hosts count as younger than those of all DNSRecords, whose root host never changes.
 */
const EDITABLE_SECONDS = 2 ** 32

/**
 * The records of a cluster. Collects changes until `settle` returns the records that changed. What
 * probes and operators found down is written to the health table at once; the caller publishes it.
 */
export class ClusterStore {
  readonly #served = new Map<string, StoredRecord>()
  /** What each object stands for, by its key: with the changes since the last `settle`. */
  readonly #objects = new Map<string, readonly ExpandedRecord[]>()
  /** What operators found down, by key of the record and address. */
  readonly #facts: Findings
  /** Of the probes that found an address down, by `namespace/name`. */
  readonly #findings: Findings
  /** Why a record or probe is refused, by key. The key of a probe begins with its kind. */
  readonly #refused = new Map<string, InputError>()
  readonly #objectProblems = new ObjectProblems()
  /** Records of documents that are valid: an object with many of them changes few at a time. */
  readonly #valid = new WeakMap<RecordDocument, ExpandedRecord>()
  /** New content of records since the last `settle`; undefined = removed. */
  #pending = new Map<string, ExpandedRecord | undefined>()
  readonly #ignored = new IgnoredLog()
  readonly #ignoredParts = new IgnoredIndex<string>()

  constructor(health: AddressHealth) {
    this.#findings = new Findings(health)
    this.#facts = new Findings(health)
  }

  get recordCount(): number {
    return this.#served.size
  }

  get refusedCount(): number {
    return this.#refused.size + this.#objectProblems.count
  }

  records(): Iterable<StoredRecord> {
    return this.#served.values()
  }

  find(key: string): StoredRecord | undefined {
    return this.#served.get(key)
  }

  problems(): InputError[] {
    const refused = [...this.#refused].sort(([a], [b]) => (a < b ? -1 : 1))
    return [...refused.map(([, error]) => error), ...this.#objectProblems.all()]
  }

  /** What is wrong with the records. `of`: name of the source. */
  problemGroups(of: string): ProblemGroup[] {
    const problems = this.#listRefused()
    const refused = { kind: 'refused-record', of, count: this.refusedCount, problems } as const
    return [refused, ...this.#ignoredParts.groups(of)]
  }

  *#listRefused(): Generator<ProblemText> {
    for (const [object, { message }] of this.#refused) {
      yield { place: CLUSTER_PLACE, object, reason: message }
    }
    yield* this.#objectProblems.list()
  }

  /**
   * Applies the current state of an object. Returns why it is refused, if that is new.
   */
  put(plural: Plural, object: ApiObject): InputError | undefined {
    // Items of a list may omit these fields.
    const typed = { ...object, apiVersion: API_VERSION, kind: KINDS[plural] }
    const resource = validateResource(typed, SERVED)
    switch (resource.kind) {
      case 'record': {
        const key = recordKey(resource.record.namespace, resource.record.name)
        const { records, fault } = expandRecord(object, resource.record)
        this.#replace(key, records)
        const refusal = this.#noteFault(key, fault)
        const ignored = findIgnored(object as YamlValue, resource.record)
        const objects = ignored.length === 0 ? [] : [{ key, parts: ignored }]
        this.#ignoredParts.set(key, objects, () => CLUSTER_PLACE)
        this.#ignored.note(key, ignored, ({ path, message }) => {
          return `${key}: ${printPath(path)}: ${message}`
        })
        return refusal
      }
      case 'probe': {
        const { namespace, name, recordName, address, isDown, downReason } = resource.probe
        const key = recordKey(namespace, name)
        this.#refused.delete(`${KINDS[plural]} ${key}`)
        const finding = { recordKey: recordKey(namespace, recordName), address } as const
        const down = { ...finding, health: 'down', reason: downReason } as const
        this.#findings.set(key, isDown ? down : undefined)
        return undefined
      }
      case 'refused': {
        const key = resource.key.replace(`${KINDS[plural]} `, '')
        // They belong to the version before.
        if (plural === 'dnsrecords') this.#ignoredParts.set(key, [], () => CLUSTER_PLACE)
        return this.#refuse(resource.key, resource.problem)
      }
      case 'other':
        // The object is being deleted.
        this.remove(plural, keyOf(object))
        return undefined
    }
  }

  /** Applies what an object of another kind stands for. Returns the problems that are new. */
  putObject({ of, records, problems }: ObjectRecords): InputError[] {
    const key = `${of.kind} ${recordKey(of.namespace, of.name)}`
    const before = this.#objects.get(key) ?? NO_RECORDS
    if (records === undefined) {
      const kept = before.length === 0 ? '' : '; its last valid records are served'
      const all = problems.map((one) => ({ ...one, message: `${one.message}${kept}` }))
      return this.#objectProblems.set(key, all)
    }
    const all = [...problems]
    this.#replace(
      key,
      records.flatMap((document) => this.#recordOf(of, document, before, all)),
    )
    return this.#objectProblems.set(key, all)
  }

  /** Returns a record of an object; of a document that is invalid, its last valid version. `problems` gets why. */
  #recordOf(
    of: ObjectReference,
    document: RecordDocument,
    before: readonly ExpandedRecord[],
    problems: ObjectProblem[],
  ): readonly ExpandedRecord[] {
    const known = this.#valid.get(document)
    if (known !== undefined) return [known]
    const { rootHost } = document.spec
    const key = objectRecordKey(of, rootHost)
    const resource = validateResource(document as unknown as YamlValue, SERVED)
    if (resource.kind === 'record') {
      const valid = expandedOf(key, resource.record)
      this.#valid.set(document, valid)
      return [valid]
    }
    const kept = before.filter((one) => one.key === key)
    if (resource.kind === 'refused') {
      const { path, message } = resource.problem
      const effect = kept.length === 0 ? 'not served' : 'its last valid version is served'
      const at = path.length === 0 ? '' : `${printPath(path)}: `
      const text = `host ${rootHost} is refused, ${effect}: ${at}${message}`
      problems.push({ of, path: [], message: text })
    }
    return kept
  }

  remove(plural: Plural, key: string): void {
    if (plural === 'dnsrecords') {
      this.#refused.delete(key)
      this.#ignored.forget(key)
      this.#ignoredParts.set(key, [], () => CLUSTER_PLACE)
      this.#replace(key, NO_RECORDS)
    } else {
      this.#refused.delete(`${KINDS[plural]} ${key}`)
      this.#findings.set(key, undefined)
    }
  }

  /** Returns the keys of the objects in `namespace`; '' = in all namespaces. */
  keys(plural: Plural, namespace: string): readonly string[] {
    const prefix = namespace === '' ? '' : `${namespace}/`
    const kind = plural === 'dnsrecords' ? '' : `${KINDS[plural]} `
    const held = plural === 'dnsrecords' ? this.#objects.keys() : this.#findings.ids()
    const refused = [...this.#refused.keys()].filter((key) => key.startsWith(kind))
    const keys = new Set([...held, ...refused.map((key) => key.slice(kind.length))])
    // A key with a space belongs to a probe.
    return [...keys].filter((key) => key.startsWith(prefix) && !key.includes(' '))
  }

  /** Logs the unused fields of records that were put since the last call. */
  logIgnored(log: Logger): void {
    this.#ignored.flush(log)
  }

  /** Returns the records that changed since the last call. */
  settle(): RecordChange[] {
    const changes: RecordChange[] = []
    for (const [key, wanted] of this.#pending) {
      const before = this.#served.get(key)
      if (isServedAs(before, wanted)) continue
      const after = wanted && storedOf(wanted)
      if (after === undefined) this.#served.delete(key)
      else this.#served.set(key, after)
      changes.push({ before, after })
    }
    this.#pending = new Map()
    return changes
  }

  /** Replaces what an object stands for. */
  #replace(objectKey: string, records: readonly ExpandedRecord[]): void {
    const before = this.#objects.get(objectKey) ?? NO_RECORDS
    for (const { key, down } of before) {
      this.#pending.set(key, undefined)
      for (const address of Object.keys(down)) this.#facts.set(`${key} ${address}`, undefined)
    }
    for (const record of records) {
      const { key, down } = record
      this.#pending.set(key, record)
      for (const [address, reason] of Object.entries(down)) {
        const finding = { recordKey: key, address: address.toLowerCase(), reason } as const
        this.#facts.set(`${key} ${address}`, { ...finding, health: 'down' })
      }
    }
    if (records.length === 0) this.#objects.delete(objectKey)
    else this.#objects.set(objectKey, records)
  }

  /** Returns the error unless it is known. The last good version of the record is kept. */
  #refuse(key: string, { path, message }: FieldProblem): InputError | undefined {
    const kept = this.#objects.has(key) ? ', its last valid version is served' : ''
    const at = path.length === 0 ? '' : `${printPath(path)}: `
    return this.#noteRefusal(key, `${key} is refused${kept}: ${at}${message}`)
  }

  /** Returns the error unless it is known. `fault`: of the annotation of a record; undefined = none. */
  #noteFault(key: string, fault: string | undefined): InputError | undefined {
    if (fault !== undefined) {
      const served = 'spec.endpoints is served without health and settings of its parts'
      return this.#noteRefusal(key, `${key}: annotation ${SITES_ANNOTATION} ${fault}: ${served}`)
    }
    this.#refused.delete(key)
    return undefined
  }

  #noteRefusal(key: string, text: string): InputError | undefined {
    const error = new InputError(undefined, text)
    if (this.#refused.get(key)?.message === error.message) return undefined
    this.#refused.set(key, error)
    return error
  }
}

/** Returns the record of a host of an object. */
function expandedOf(key: string, record: DnsRecord): ExpandedRecord {
  const packed = packRecord(record)
  const heldSinceSeconds = EDITABLE_SECONDS + record.createdSeconds
  return { key, packed, origin: undefined, original: undefined, heldSinceSeconds, down: {} }
}

function storedOf(one: ExpandedRecord): StoredRecord {
  return new StoredRecord(one.key, one.packed, one.origin, one.original, one.heldSinceSeconds)
}

/** True if a record is already served in that form; undefined = it is not served. */
function isServedAs(before: StoredRecord | undefined, wanted: ExpandedRecord | undefined): boolean {
  if (before === undefined || wanted === undefined) return before === wanted
  const { packed, origin, original, heldSinceSeconds } = before
  const isSame = packed === wanted.packed && original === wanted.original
  const isSameObject = heldSinceSeconds === wanted.heldSinceSeconds
  return isSame && isSameObject && isSameOrigin(origin, wanted.origin)
}
