import type { ApiObject } from '../kube/api.ts'

/** One change that the operator makes to the cluster. All of them may be done twice, or are refused then. */
export type Write =
  /** `record` is not to go before what was made of it is gone. */
  | { readonly kind: 'hold'; readonly record: ApiObject }
  /** `record` may go. */
  | { readonly kind: 'unhold'; readonly record: ApiObject }
  /** The finalizer is no longer ours; it stays if somebody else put it there as well. */
  | { readonly kind: 'leave'; readonly record: ApiObject }
  /** `object` is to be as it says. */
  | { readonly kind: 'apply'; readonly object: ApiObject }
  /** `object` takes the place of `over`, if that is as it was; undefined = of nothing. */
  | { readonly kind: 'put'; readonly object: ApiObject; readonly over: ApiObject | undefined }
  /** `object` is to be gone, if it is as it was. */
  | { readonly kind: 'drop'; readonly object: ApiObject }
  /** `object` is to be gone; another of its name stays. */
  | { readonly kind: 'delete'; readonly object: ApiObject }
  /** All that is ours of the status of `record` is to be as `status` says. */
  | { readonly kind: 'status'; readonly record: ApiObject; readonly status: ApiObject }

/** Does writes. Rejects with ApiError where the API refuses one: 409 where somebody was faster. */
export interface Writer {
  write(write: Write): Promise<void>
}
