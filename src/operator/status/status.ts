import type { ApiObject, JsonValue } from '../../kube/api.ts'
import { isSame, itemsOf } from '../record/fields.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { type Condition, type ConditionType, printConditions } from './conditions.ts'
import { FIELDS, type StatusFields } from './status-fields.ts'

const CONDITION_TYPES: readonly (JsonValue | undefined)[] = [
  'Ready',
  'Healthy',
  'Active',
  'ReadyForDelegation',
  'EndpointsServed',
  'PeersAccepted',
  'PeersDegraded',
]

/**
 * Our complete desired part of a record's status. Fields that `changes` does not name are kept, and
 * so are conditions of types that `conditions` does not contain. A type without a condition is
 * removed. Active exists only with a group.
 */
export function composeStatus(
  record: DnsRecordView,
  conditions: readonly (Condition | ConditionType)[],
  changes: StatusFields,
  nowMs: number,
): ApiObject {
  const { status: present, generation: observedGeneration } = record
  const wanted: StatusFields = { ...changes, observedGeneration }
  const status: { [key: string]: JsonValue } = {}
  for (const field of FIELDS) {
    const value = field in wanted ? wanted[field] : present[field]
    if (value !== undefined) status[field] = value
  }
  const wantedConditions = conditions.filter((one) => typeof one !== 'string')
  const named = conditions.map((one) => (typeof one === 'string' ? one : one.type))
  const printed = printConditions(wantedConditions, record.conditions, observedGeneration, nowMs)
  const isKept = ({ type }: ApiObject): boolean => {
    return type !== 'Active' || status.group !== undefined
  }
  const kept = ownConditions(record)
    .filter(({ type }) => !named.some((name) => name === type))
    .filter(isKept)
  status.conditions = [...printed, ...kept]
  return status
}

/** True if applying `status` would not change the record. */
export function isStatusInPlace(record: DnsRecordView, status: ApiObject): boolean {
  if (!FIELDS.every((field) => isSame(record.status[field], status[field]))) return false
  const [present, wanted] = [ownConditions(record), itemsOf(status, 'conditions')]
  return (
    present.length === wanted.length &&
    wanted.every((one) => {
      const existing = present.find(({ type }) => type === one.type)
      return isSame(one, existing)
    })
  )
}

/** The number of changes to a record's published endpoints, for its status. */
export function countWrites({ writeCounter }: DnsRecordView, isChanged: boolean): number {
  return isChanged ? writeCounter + 1 : writeCounter
}

function ownConditions({ conditions }: DnsRecordView): readonly ApiObject[] {
  return conditions.filter(({ type }) => CONDITION_TYPES.includes(type))
}
