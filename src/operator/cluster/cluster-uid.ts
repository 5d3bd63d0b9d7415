import { ApiError, type ApiObject, textOf } from '../../kube/api.ts'
import type { Objects } from '../../kube/objects.ts'

const KUBE_SYSTEM = {
  resource: { group: '', version: 'v1', plural: 'namespaces' },
  namespace: '',
  name: 'kube-system',
}

/** The UID that identifies a cluster, or the reason why it could not be read. */
type ClusterUid =
  | { readonly uid: string }
  /** `isForbidden`: this account may not read it, so a retry does not help. */
  | { readonly problem: string; readonly isForbidden: boolean }

/** Reads the UID of the namespace kube-system, by which Kuadrant identifies clusters. */
export async function readClusterUid(objects: Objects): Promise<ClusterUid> {
  let found: ApiObject | undefined
  try {
    found = await objects.get(KUBE_SYSTEM)
  } catch (error) {
    const isForbidden = error instanceof ApiError && error.status === 403
    const cause = error instanceof Error ? error.message : String(error)
    return { problem: `the namespace kube-system cannot be read: ${cause}`, isForbidden }
  }
  const uid = textOf(found?.metadata, 'uid')
  if (uid !== '') return { uid }
  return { problem: 'namespace kube-system not found', isForbidden: false }
}
