import { type ApiObject, textOf } from './api.ts'

/** `namespace/name`, or `name` if the kind has no namespaces: neither contains a slash. */
export function keyOf(object: ApiObject): string {
  const { metadata } = object
  const [namespace, name] = [textOf(metadata, 'namespace'), textOf(metadata, 'name')]
  return namespace === '' ? name : `${namespace}/${name}`
}

export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, Math.max(slash, 0)), name: key.slice(slash + 1) }
}
