import type { StatusFields } from '../status/status-fields.ts'

/** The group of a record's cluster, and the groups that are active in the record's zone. */
export interface Membership {
  readonly group: string
  /** Undefined = not known; then the group counts as active. */
  readonly active: readonly string[] | undefined
}

/** Separates groups in `status.activeGroups`, as Kuadrant's operator writes them. */
const SEPARATOR = ','

/** True if only other groups are active. */
export function isPassive(membership: Membership | undefined): boolean {
  return membership?.active?.includes(membership.group) === false
}

/** Fields of the status. Without a group they are removed. */
export function groupFields(membership: Membership | undefined): StatusFields {
  if (membership === undefined) return { group: undefined, activeGroups: undefined }
  const { group, active } = membership
  return { group, ...(active === undefined ? {} : { activeGroups: active.join(SEPARATOR) }) }
}

/** Reads `status.activeGroups`. Undefined = not known; Kuadrant's operator writes '' after a failed lookup. */
export function scanActiveGroupsField(text: unknown): readonly string[] | undefined {
  return typeof text === 'string' && text !== '' ? text.split(SEPARATOR) : undefined
}
