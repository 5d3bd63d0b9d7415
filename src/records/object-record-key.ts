/** Separates kind, name and host in the key of a record that was made from an object of another kind. */
const SEPARATOR = ':'

/**
 * Returns the key of the record of one host of an object, such as `apps/Gateway:shop:shop.example.com`. No DNSRecord
 * has it, because no name of an object contains a colon.
 */
export function objectRecordKey(
  of: { readonly kind: string; readonly namespace: string; readonly name: string },
  host: string,
): string {
  return `${of.namespace}/${[of.kind, of.name, host].join(SEPARATOR)}`
}

/** True for the key of a record that was made from an object of another kind. */
export function isObjectRecord(key: string): boolean {
  return key.includes(SEPARATOR)
}

/** Names the object that a record is from: `DNSRecord apps/shop`, or `Gateway apps/shop (shop.example.com)`. */
export function printRecordObject(key: string): string {
  const slash = key.indexOf('/')
  const [kind, name, host] = key.slice(slash + 1).split(SEPARATOR)
  return name === undefined
    ? `DNSRecord ${key}`
    : `${kind} ${key.slice(0, slash)}/${name} (${host})`
}
