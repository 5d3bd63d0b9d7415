import type { ApiObject } from '../../kube/api.ts'

/**
 * One change that the operator makes to the cluster. Each can be repeated: it then has no effect or
 * is refused.
 */
export type Write =
  /** Adds the finalizer: `record` must not be removed before everything derived from it. */
  | { readonly kind: 'hold'; readonly record: ApiObject }
  /** Removes the finalizer: `record` may be removed. */
  | { readonly kind: 'unhold'; readonly record: ApiObject }
  /** Gives up our ownership of the finalizer; it is kept if another manager owns it as well. */
  | { readonly kind: 'leave'; readonly record: ApiObject }
  /** Applies `object`. */
  | { readonly kind: 'apply'; readonly object: ApiObject }
  /** Replaces `over` by `object` if `over` is unchanged; undefined = creates it. */
  | { readonly kind: 'put'; readonly object: ApiObject; readonly over: ApiObject | undefined }
  /** Deletes `object` if it is unchanged. */
  | { readonly kind: 'drop'; readonly object: ApiObject }
  /** Deletes `object`; a later object with the same name is kept. */
  | { readonly kind: 'delete'; readonly object: ApiObject }
  /** Applies `status` as our complete part of the status of `record`. */
  | { readonly kind: 'status'; readonly record: ApiObject; readonly status: ApiObject }

/** Does writes. Rejects with ApiError if the API refuses one: 409 if another writer was faster. */
export interface Writer {
  write(write: Write): Promise<void>
}
