import { type ApiObject, isObject, textOf } from '../../kube/api.ts'

/** The text of a Secret's `key`, without surrounding white space; '' = missing. */
export function secretText(secret: ApiObject, key: string): string {
  const { data } = secret
  const encoded = isObject(data) ? textOf(data, key) : ''
  return Buffer.from(encoded, 'base64').toString('utf8').trim()
}
