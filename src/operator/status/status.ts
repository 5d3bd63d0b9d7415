import { type ApiObject, type JsonValue, textOf } from '../../kube/api.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from '../record/object.ts'
import { shortHash } from '../record/short-hash.ts'
import { type Condition, printConditions } from './conditions.ts'

/** Fields of the status that the operator owns, in addition to the conditions. */
const FIELDS = [
  'observedGeneration',
  'writeCounter',
  'endpoints',
  'ownerID',
  'domainOwners',
  'providerRef',
  'zoneID',
  'zoneDomainName',
  'peers',
] as const

/** A field that is undefined is removed. */
export type StatusFields = { readonly [key in (typeof FIELDS)[number]]?: JsonValue | undefined }

const CONDITION_TYPES: readonly (JsonValue | undefined)[] = [
  'Ready',
  'Healthy',
  'ReadyForDelegation',
  'PeersAccepted',
]

/**
 * Our complete desired part of a record's status. Fields that `changes` does not name are kept, and
 * so are conditions of types that `conditions` does not contain.
 */
export function composeStatus(
  record: ApiObject,
  conditions: readonly Condition[],
  changes: StatusFields,
  nowMs: number,
): ApiObject {
  const present = mappingOf(record, 'status')
  const { generation } = metadataOf(record)
  const observedGeneration = typeof generation === 'number' ? generation : 0
  const kept = ownConditions(present).filter((one) => !conditions.some((c) => c.type === one.type))
  const status: { [key: string]: JsonValue } = {}
  const wanted: StatusFields = { ...changes, observedGeneration }
  for (const field of FIELDS) {
    const value = field in wanted ? wanted[field] : present[field]
    if (value !== undefined) status[field] = value
  }
  const printed = printConditions(conditions, present.conditions, observedGeneration, nowMs)
  status.conditions = [...printed, ...kept]
  return status
}

/** True if applying `status` would not change the record. */
export function isStatusInPlace(record: ApiObject, status: ApiObject): boolean {
  const present = mappingOf(record, 'status')
  const isEqual = FIELDS.every((field) => isSame(present[field], status[field]))
  const [now, wanted] = [ownConditions(present), itemsOf(status, 'conditions')]
  return (
    isEqual &&
    now.length === wanted.length &&
    wanted.every((one) =>
      isSame(
        one,
        now.find(({ type }) => type === one.type),
      ),
    )
  )
}

/** Characters that would change how a registry note is parsed. */
const UNFIT_ID = /[^\x21-\x7e]|[,"\\]|&&/

/** The owner id of a record among the owners of the same names. */
export function ownerIdOf(record: ApiObject): string {
  const given = textOf(mappingOf(record, 'spec'), 'ownerID')
  if (given === '') return shortHash(textOf(metadataOf(record), 'uid'))
  return UNFIT_ID.test(given) ? shortHash(given) : given
}

function ownConditions(status: ApiObject): readonly ApiObject[] {
  return itemsOf(status, 'conditions').filter(({ type }) => CONDITION_TYPES.includes(type))
}
