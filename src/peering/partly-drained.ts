import type { RecordContent } from '../dnsrecord/pack.ts'
import type { StoredRecord } from '../dnsrecord/record-source.ts'

/**
 * Returns why drains by annotations have no effect, if only some of our own records of a host have
 * one: a merged record can only be drained as far as it is ours.
 */
export function printPartlyDrained(
  host: string,
  mine: readonly { readonly record: StoredRecord; readonly content: RecordContent }[],
): string[] {
  const drained = mine.find(({ content }) => content.settings?.drain !== undefined)
  const other = mine.find(({ content }) => content.settings?.drain === undefined)
  if (drained === undefined || other === undefined) return []
  const [key, otherKey] = [drained.record.key, other.record.key]
  return [`${host}: the annotation drain of ${key} has no effect, because ${otherKey} has none`]
}
