import type { ApiObject } from '../../kube/api.ts'
import type { RecordDocument } from '../../records/record-document.ts'
import type { FieldProblem } from '../../records/validate/fields.ts'

/** A resource of the API that a kind reads. */
export interface ObjectResource {
  /** '' = the core group. */
  readonly group: string
  readonly version: string
  /** Other versions that are read alike; each list tries them in this order. Missing = none. */
  readonly equalVersions?: readonly string[]
  readonly plural: string
  readonly kind: string
  /** True: its objects have no namespace. Missing = false. */
  readonly isClusterScoped?: true
  /** True: it is watched once a reader needs it. Missing = false, as for the first one of a kind. */
  readonly isOnDemand?: true
}

/**
 * A kind of Kubernetes objects that DNSRecords are made from: a word of `sources`. The server serves these DNSRecords
 * itself; an operator writes them to the API. A kind is one folder and one line of `object-kinds.ts`.
 */
export interface ObjectKind {
  /** Its word, in lower case. */
  readonly word: string
  /**
   * What it watches. The first one has the objects that give the records: without it, nothing is read. The API may lack
   * the others. Another kind may watch the same resource; there is one watch for both.
   */
  readonly resources: readonly ObjectResource[]
  readonly open: () => ObjectReader
}

/** The objects of one kind in a cluster. It is pure: no input or output, no clock. */
export interface ObjectReader {
  /** Applies the current state of an object of one of the resources. */
  put(plural: string, object: ApiObject): void
  /** `key`: `namespace/name`, or `name` of an object without a namespace. */
  remove(plural: string, key: string): void
  /** Keys of the objects of the resource that it holds, in `namespace`; '' = in all namespaces. */
  keys(plural: string, namespace: string): Iterable<string>
  /** True if it needs a resource that is watched on demand. Missing = its kind has none. */
  needs?(plural: string): boolean
  /**
   * Returns what changed since the last call: also objects whose records change by another object, and removed ones
   * (without records and problems). It is first called when all resources that the API has were listed.
   */
  settle(): readonly ObjectRecords[]
}

/** What an object stands for. */
export interface ObjectRecords {
  /** The object that gives the records: a Gateway, a Service, an Ingress, a DNSEndpoint. */
  readonly of: ObjectReference
  /**
   * One for each host name, not validated, without a zone label; empty = none. Undefined = the object is invalid: its
   * last good records stay.
   */
  readonly records: readonly RecordDocument[] | undefined
  /** What is invalid or not used, with its place in the object or in another one. */
  readonly problems: readonly ObjectProblem[]
}

/** Receives what is invalid or not used. */
export type OnProblem = (problem: FieldProblem) => void

export interface ObjectProblem extends FieldProblem {
  /** The object with the field. */
  readonly of: ObjectReference
}

/**
 * Set identifier of endpoints of objects that have no set identifier, weight, geo code or location. An identifier
 * names one endpoint of a site: if several objects have different ones with it, those of the oldest are served. Equal
 * ones, and those of other sites, are united.
 */
export const UNNAMED_SET = 'unnamed'

/** Names an object, as in an Event. */
export interface ObjectReference {
  readonly apiVersion: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** '' = unknown. */
  readonly uid: string
}
