import type { DnsRecordView } from '../record/record-view.ts'
import { type Condition, endpointsServedCondition } from './conditions.ts'

/** The condition about conflicts with other records; none until the first conflict. */
export function servedConditions(record: DnsRecordView, texts: readonly string[]): Condition[] {
  const isKnown = record.condition('EndpointsServed') !== undefined
  return isKnown || texts.length > 0 ? [endpointsServedCondition(texts)] : []
}
