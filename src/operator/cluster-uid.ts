import { ApiError, type ApiObject, textOf } from '../kube/api.ts'
import type { Objects } from '../kube/objects.ts'

const KUBE_SYSTEM = {
  resource: { group: '', version: 'v1', plural: 'namespaces' },
  namespace: '',
  name: 'kube-system',
}

/** What tells a cluster from all others, or why it can't be had. */
export type ClusterUid =
  | { readonly uid: string }
  /** `isForbidden`: to this account, and so for good. */
  | { readonly problem: string; readonly isForbidden: boolean }

/** The UID of the namespace that every cluster has, by which Kuadrant tells clusters apart. */
export async function readClusterUid(objects: Objects): Promise<ClusterUid> {
  let found: ApiObject | undefined
  try {
    found = await objects.get(KUBE_SYSTEM)
  } catch (error) {
    const isForbidden = error instanceof ApiError && error.status === 403
    const cause = error instanceof Error ? error.message : String(error)
    return { problem: `the namespace kube-system can't be read: ${cause}`, isForbidden }
  }
  const uid = textOf(found?.metadata, 'uid')
  if (uid !== '') return { uid }
  return { problem: 'there is no namespace kube-system', isForbidden: false }
}
