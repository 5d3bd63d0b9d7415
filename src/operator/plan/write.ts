import type { ApiObject } from '../../kube/api.ts'
import type { DesiredRecord } from '../record/desired-record.ts'
import type { DnsRecordView } from '../record/record-view.ts'

/**
 * One change that the operator makes to the cluster. Each can be repeated: it then has no effect or
 * is refused.
 */
export type Write =
  /** Adds the finalizer: `record` must not be removed before everything derived from it. */
  | {
      readonly kind: 'hold'
      readonly record: DnsRecordView
      /** The annotation with what this operator found, for other clusters; '' = none. */
      readonly report: string
    }
  /** Removes the finalizer: `record` may be removed. */
  | { readonly kind: 'unhold'; readonly record: DnsRecordView }
  /** Gives up our ownership of the finalizer; it is kept if another manager owns it as well. */
  | { readonly kind: 'leave'; readonly record: DnsRecordView }
  /** Applies `record`. */
  | { readonly kind: 'apply'; readonly record: DesiredRecord }
  /** Replaces `over` by `record` if `over` is unchanged; undefined = creates it. */
  | {
      readonly kind: 'put'
      readonly record: DesiredRecord
      readonly over: DnsRecordView | undefined
    }
  /** Deletes `record` if it is unchanged. */
  | { readonly kind: 'drop'; readonly record: DnsRecordView }
  /** Deletes `record`; a later object with the same name is kept. */
  | { readonly kind: 'delete'; readonly record: DnsRecordView }
  /** Applies `status` as our complete part of the status of `record`. */
  | { readonly kind: 'status'; readonly record: DnsRecordView; readonly status: ApiObject }

/** Does writes. Rejects with ApiError if the API refuses one: 409 if another writer was faster. */
export interface Writer {
  write(write: Write): Promise<void>
}
