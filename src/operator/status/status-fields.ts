import type { JsonValue } from '../../kube/api.ts'

/** Fields of the status that the operator owns, in addition to the conditions. */
export const FIELDS = [
  'observedGeneration',
  'writeCounter',
  'endpoints',
  'ownerID',
  'domainOwners',
  'providerRef',
  'zoneID',
  'zoneDomainName',
  'peers',
  'group',
  'activeGroups',
  'served',
  'down',
] as const

/** A field that is undefined is removed. */
export type StatusFields = { readonly [key in (typeof FIELDS)[number]]?: JsonValue | undefined }
