import { type ApiObject, isObject, type JsonValue, textOf } from '../../kube/api.ts'

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

/** The strings in a list field. */
export function textsOf(parent: ApiObject, name: string): readonly string[] {
  const value = parent[name]
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

export function labelOf(object: ApiObject, label: string): string {
  return textOf(metadataOf(object).labels, label)
}

export function finalizersOf(object: ApiObject): readonly string[] {
  return textsOf(metadataOf(object), 'finalizers')
}

export function isDeleting(object: ApiObject): boolean {
  return textOf(metadataOf(object), 'deletionTimestamp') !== ''
}

/** True if server-side apply lists us among the managers of the object's fields. */
export function isManaged(object: ApiObject): boolean {
  return itemsOf(metadataOf(object), 'managedFields').some((one) => one.manager === FIELD_MANAGER)
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
