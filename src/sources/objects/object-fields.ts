import { type ApiObject, isObject, type JsonValue, textOf } from '../../kube/api.ts'

/** A mapping in a mapping; empty if it is missing. */
export function partOf(parent: JsonValue | undefined, name: string): ApiObject {
  const part = isObject(parent) ? parent[name] : undefined
  return isObject(part) ? part : {}
}

/** The mappings in a list; none if it is missing. */
export function itemsOf(parent: JsonValue | undefined, name: string): readonly ApiObject[] {
  const list = isObject(parent) ? parent[name] : undefined
  return Array.isArray(list) ? list.filter(isObject) : []
}

/** The strings in a list; none if it is missing. */
export function textsOf(parent: JsonValue | undefined, name: string): readonly string[] {
  const list = isObject(parent) ? parent[name] : undefined
  return Array.isArray(list) ? list.filter((item) => typeof item === 'string') : []
}

/** True for an object that is being deleted. */
export function isObjectGone({ metadata }: ApiObject): boolean {
  return textOf(metadata, 'deletionTimestamp') !== ''
}

/** Yields the keys of a namespace; '' = of all. */
export function* keysIn(keys: Iterable<string>, namespace: string): Generator<string> {
  const prefix = namespace === '' ? '' : `${namespace}/`
  for (const key of keys) if (key.startsWith(prefix)) yield key
}
