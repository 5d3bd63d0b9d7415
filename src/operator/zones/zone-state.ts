import { textOf } from '../../kube/api.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { REASONS, UNSERVED_START } from '../status/conditions.ts'

/** How each fault and each note begins. */
const FAULT = 'no nameserver of its Secret serves the zone'
const NOTE = 'not known whether a nameserver serves the zone'

/** What is known of a zone. Both texts are empty if a nameserver serves it, or if it is not known yet. */
export interface ZoneState {
  /** Why no nameserver serves the zone; '' = one does, or it is not known. */
  readonly fault: string
  /** Why it is not known whether a nameserver serves the zone; '' = it is known. */
  readonly note: string
}

export const NO_ZONE_FAULT: ZoneState = { fault: '', note: '' }

/** `answers`: the nameservers with their answers, as text. */
export function printZoneFault(zone: string, answers: string): string {
  return `${FAULT} ${zone}: ${answers}: add the zone to their Corefiles, or remove it from ZONES`
}

export function printZoneNote(zone: string, answers: string): string {
  return `${NOTE} ${zone}: ${answers}`
}

/** What the Ready condition of a record says of its zone. */
export function recallZone(record: DnsRecordView, zone: string): ZoneState {
  const fault = unservedZoneOf(record)
  const ready = record.condition('Ready')
  const notes = hasZoneNote(textOf(ready, 'reason')) ? textOf(ready, 'message').split('; ') : []
  return {
    fault: fault.startsWith(`${FAULT} ${zone}: `) ? fault : '',
    note: notes.find((text) => text.startsWith(`${NOTE} ${zone}: `)) ?? '',
  }
}

/** The messages of other reasons may quote texts of other servers. */
function hasZoneNote(reason: string): boolean {
  const { ready, zoneNotServed, inactiveGroup } = REASONS
  return reason === ready || reason === zoneNotServed || reason === inactiveGroup
}

/** Why no nameserver serves the zone of a record, as its Ready condition says; '' = it says nothing of this. */
export function unservedZoneOf(record: DnsRecordView): string {
  const ready = record.condition('Ready')
  if (textOf(ready, 'reason') !== REASONS.zoneNotServed) return ''
  const [first = ''] = textOf(ready, 'message').split('; ', 1)
  return first.startsWith(UNSERVED_START + FAULT) ? first.slice(UNSERVED_START.length) : ''
}
