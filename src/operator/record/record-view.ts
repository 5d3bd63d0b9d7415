import { type ApiObject, textOf } from '../../kube/api.ts'
import { API_VERSION, type Resource } from '../../records/dns-record.ts'
import type { HealthCheck } from '../../records/health-check.ts'
import { SITES_ANNOTATION, type SiteFacts, scanSiteFacts } from '../../records/site-facts.ts'
import { validateResource } from '../../records/validate/resource.ts'
import { finalizersOf, isManaged, itemsOf, mappingOf, metadataOf } from './fields.ts'
import { AUTHORITATIVE_LABEL, RECORD_FINALIZER, TYPE_LABEL } from './labels.ts'
import { shortHash } from './short-hash.ts'
import { readSpecEndpoints, type SpecEndpoint } from './spec-endpoint.ts'

/** What a DNSRecord is for the operator. */
type RecordRole =
  /** An operator derived it from another record. Deriving from it again would never end. */
  | 'derived'
  /** It combines the endpoints of delegating records. */
  | 'authoritative'
  /** It is published through an authoritative record. */
  | 'delegating'
  | 'ordinary'

/** The identity of an owner in `metadata.ownerReferences`. */
interface OwnerReference {
  readonly kind: string
  readonly name: string
  readonly uid: string
}

/** Characters that would change how a registry note is parsed. */
const UNFIT_ID = /[^\x21-\x7e]|[,"\\]|&&/

/**
 * A DNSRecord as the API returned it, with typed fields. Texts that are missing are '', numbers 0,
 * mappings and lists empty.
 */
export class DnsRecordView {
  readonly object: ApiObject
  readonly namespace: string
  readonly name: string
  /** `namespace/name`. */
  readonly key: string
  readonly uid: string
  readonly generation: number
  readonly role: RecordRole
  readonly spec: ApiObject
  readonly rootHost: string
  /** Name of the provider Secret; '' = the default provider of the namespace. */
  readonly providerName: string
  readonly status: ApiObject
  readonly #metadata: ApiObject
  #resource: Resource | undefined
  #endpoints: readonly SpecEndpoint[] | undefined
  #siteFacts: SiteFacts | string | undefined

  constructor(object: ApiObject) {
    const metadata = metadataOf(object)
    this.object = object
    this.#metadata = metadata
    this.namespace = textOf(metadata, 'namespace')
    this.name = textOf(metadata, 'name')
    this.key = `${this.namespace}/${this.name}`
    this.uid = textOf(metadata, 'uid')
    this.generation = typeof metadata.generation === 'number' ? metadata.generation : 0
    this.role = roleOf(object)
    this.spec = mappingOf(object, 'spec')
    this.rootHost = textOf(this.spec, 'rootHost')
    this.providerName = textOf(this.spec.providerRef, 'name')
    this.status = mappingOf(object, 'status')
  }

  get resourceVersion(): string {
    return textOf(this.#metadata, 'resourceVersion')
  }

  /** RFC 3339. */
  get created(): string {
    return textOf(this.#metadata, 'creationTimestamp')
  }

  /** RFC 3339; '' = it is not being deleted. */
  get deletionTimestamp(): string {
    return textOf(this.#metadata, 'deletionTimestamp')
  }

  get isDeleting(): boolean {
    return this.deletionTimestamp !== ''
  }

  /** '' = missing. */
  label(name: string): string {
    return textOf(this.#metadata.labels, name)
  }

  /** '' = missing. */
  annotation(name: string): string {
    return textOf(this.#metadata.annotations, name)
  }

  get finalizers(): readonly string[] {
    return finalizersOf(this.object)
  }

  /** True if the record has the finalizer of DNS operators. */
  get isHeld(): boolean {
    return this.finalizers.includes(RECORD_FINALIZER)
  }

  /** True if server-side apply lists us among the managers of its fields. */
  get isManaged(): boolean {
    return isManaged(this.object)
  }

  get ownerReferences(): readonly OwnerReference[] {
    return itemsOf(this.#metadata, 'ownerReferences').map((one) => {
      return { kind: textOf(one, 'kind'), name: textOf(one, 'name'), uid: textOf(one, 'uid') }
    })
  }

  isOwnedBy({ uid }: DnsRecordView): boolean {
    return this.ownerReferences.some((one) => one.uid === uid)
  }

  /** Id of the record among the owners of the same names: `spec.ownerID`, or derived from the UID. */
  get ownerId(): string {
    const given = textOf(this.spec, 'ownerID')
    if (given === '') return shortHash(this.uid)
    return UNFIT_ID.test(given) ? shortHash(given) : given
  }

  /** The items of `spec.endpoints`, as the API returned them. */
  get endpointObjects(): readonly ApiObject[] {
    return itemsOf(this.spec, 'endpoints')
  }

  /** `spec.endpoints`, parsed without validation. */
  get endpoints(): readonly SpecEndpoint[] {
    this.#endpoints ??= readSpecEndpoints(this.endpointObjects)
    return this.#endpoints
  }

  /** What the annotation reports about each site; a string = why it is invalid, '' = it is missing. */
  get siteFacts(): SiteFacts | string {
    const text = this.annotation(SITES_ANNOTATION)
    this.#siteFacts ??= text === '' ? '' : scanSiteFacts(text, this.endpointObjects)
    return this.#siteFacts
  }

  /** `status.endpoints`: the endpoints that were published last. */
  get publishedEndpoints(): readonly SpecEndpoint[] {
    return readSpecEndpoints(itemsOf(this.status, 'endpoints'))
  }

  get conditions(): readonly ApiObject[] {
    return itemsOf(this.status, 'conditions')
  }

  condition(type: string): ApiObject | undefined {
    return this.conditions.find((one) => one.type === type)
  }

  /** Number of changes to its published endpoints. */
  get writeCounter(): number {
    const { writeCounter } = this.status
    return typeof writeCounter === 'number' ? writeCounter : 0
  }

  /** The validated record, or why it is invalid. A record that is being deleted is `other`. */
  get resource(): Resource {
    const identity = { apiVersion: API_VERSION, kind: 'DNSRecord' }
    this.#resource ??= validateResource({ ...this.object, ...identity })
    return this.#resource
  }

  /** undefined = the record is invalid, or has none. */
  get healthCheck(): HealthCheck | undefined {
    const { resource } = this
    return resource.kind === 'record' ? resource.record.healthCheck : undefined
  }

  /** What the cluster `id` wrote into `status.remoteRecordStatuses`. */
  remoteStatus(id: string): ApiObject {
    return mappingOf(mappingOf(this.status, 'remoteRecordStatuses'), id)
  }

  /** The record as the cluster `id` sees it: with that cluster's status in place of its own. */
  asSeenByCluster(id: string): DnsRecordView {
    return new DnsRecordView({ ...this.object, status: this.remoteStatus(id) })
  }
}

/** The role of a DNSRecord in the API's form. */
export function roleOf(object: ApiObject): RecordRole {
  const { labels } = metadataOf(object)
  if (textOf(labels, TYPE_LABEL) !== '') return 'derived'
  if (textOf(labels, AUTHORITATIVE_LABEL) === 'true') return 'authoritative'
  return mappingOf(object, 'spec').delegate === true ? 'delegating' : 'ordinary'
}
