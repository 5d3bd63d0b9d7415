import { type ApiObject, type JsonValue, textOf } from '../kube/api.ts'
import { type Condition, printConditions } from './conditions.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from './object.ts'
import { shortHash } from './short-hash.ts'

/** What of the status is the operator's, beside the conditions. */
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

/** A field that is undefined goes. */
export type StatusFields = { readonly [key in (typeof FIELDS)[number]]?: JsonValue | undefined }

const CONDITION_TYPES: readonly (JsonValue | undefined)[] = [
  'Ready',
  'Healthy',
  'ReadyForDelegation',
  'PeersAccepted',
]

/**
 * The whole of what is ours of a record's status, as it is to be: fields that `changes` doesn't name stay as they are,
 * and so do conditions of other types than those `conditions` are of.
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

/** True if applying `status` would change nothing of what is there. */
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

/** What would be read as something else in a note of ownership. */
const UNFIT_ID = /[^\x21-\x7e]|[,"\\]|&&/

/** What a record is known by among those that own the same names. */
export function ownerIdOf(record: ApiObject): string {
  const given = textOf(mappingOf(record, 'spec'), 'ownerID')
  if (given === '') return shortHash(textOf(metadataOf(record), 'uid'))
  return UNFIT_ID.test(given) ? shortHash(given) : given
}

function ownConditions(status: ApiObject): readonly ApiObject[] {
  return itemsOf(status, 'conditions').filter(({ type }) => CONDITION_TYPES.includes(type))
}
