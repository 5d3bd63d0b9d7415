import { type ApiObject, textOf } from '../../kube/api.ts'
import type { ObjectReference } from './object-kind.ts'

/** Returns the reference to an object with its `apiVersion` and `kind`. */
export function referenceOf({ apiVersion, kind, metadata }: ApiObject): ObjectReference {
  return {
    apiVersion: String(apiVersion),
    kind: String(kind),
    namespace: textOf(metadata, 'namespace'),
    name: textOf(metadata, 'name'),
    uid: textOf(metadata, 'uid'),
  }
}
