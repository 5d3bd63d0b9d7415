import { type ApiObject, isObject, type JsonValue, textOf } from '../../kube/api.ts'

/** Field manager of the fields that the operator applies. */
export const FIELD_MANAGER = 'sextant-operator'

export function metadataOf(object: ApiObject): ApiObject {
  return isObject(object.metadata) ? object.metadata : {}
}

export function mappingOf(parent: ApiObject, name: string): ApiObject {
  const value = parent[name]
  return isObject(value) ? value : {}
}

/** The mappings in a list field. */
export function itemsOf(parent: ApiObject, name: string): readonly ApiObject[] {
  const value = parent[name]
  return Array.isArray(value) ? value.filter(isObject) : []
}

export function labelOf(object: ApiObject, label: string): string {
  return textOf(metadataOf(object).labels, label)
}

export function finalizersOf(object: ApiObject): readonly string[] {
  const { finalizers } = metadataOf(object)
  return Array.isArray(finalizers) ? finalizers.filter((one) => typeof one === 'string') : []
}

export function isDeleting(object: ApiObject): boolean {
  return textOf(metadataOf(object), 'deletionTimestamp') !== ''
}

/** True if server-side apply lists us among the managers of the object's fields. */
export function isManaged(object: ApiObject): boolean {
  return itemsOf(metadataOf(object), 'managedFields').some((one) => one.manager === FIELD_MANAGER)
}

/** True if `owner` is among the object's owners. */
export function isOwnedBy(object: ApiObject, owner: ApiObject): boolean {
  const uid = textOf(metadataOf(owner), 'uid')
  return itemsOf(metadataOf(object), 'ownerReferences').some((one) => one.uid === uid)
}

/** True if the values are equal; the order of keys in mappings does not matter. */
export function isSame(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, i) => isSame(item, b[i]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((key) => isSame(a[key], b[key]))
}
