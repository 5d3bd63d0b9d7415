import type { Dispenser } from '../../corefile/dispenser.ts'
import type { ZoneSettings } from '../../publish/build/owner-set.ts'
import { scanAnswers as scanNumber, scanStickyPrefix } from '../../records/validate/settings.ts'
import {
  type AllDownPolicy,
  ANSWERS_MAX,
  STICKY_DEFAULT,
  type StickyPrefix,
} from '../../steering/rules.ts'

/** Settings while the properties are read. */
export type SettingsDraft = { -readonly [K in keyof ZoneSettings]?: ZoneSettings[K] }

/** Reads `all-down open | closed | ID`. Throws InputError. */
export function scanAllDown(d: Dispenser, draft: SettingsDraft): AllDownPolicy {
  if (draft.allDown !== undefined) throw d.error('all-down appears twice')
  const policy = d.onlyArg()
  if (policy !== '') return policy
  throw d.error('all-down must be open, closed or the set identifier of an endpoint')
}

/** Reads `sticky [IPV4_BITS IPV6_BITS]`. Throws InputError. */
export function scanSticky(d: Dispenser, draft: SettingsDraft): StickyPrefix {
  if (draft.sticky !== undefined) throw d.error('sticky appears twice')
  const lengths = d.remainingArgs(0, 2)
  const prefix = lengths.length === 0 ? STICKY_DEFAULT : scanStickyPrefix(lengths)
  if (prefix !== undefined) return prefix
  throw d.error(
    `sticky needs the prefix lengths for IPv4 (1 to 32) and IPv6 (1 to 64), such as \`sticky 24 56\`, got ${lengths.join(' ')}`,
  )
}

/** Reads `answers N`. Throws InputError. */
export function scanAnswers(d: Dispenser, draft: SettingsDraft): number {
  if (draft.answers !== undefined) throw d.error('answers appears twice')
  const text = d.onlyArg()
  const answers = scanNumber(text)
  if (answers !== undefined) return answers
  throw d.error(
    `answers needs the largest number of endpoints in an answer, 1 to ${ANSWERS_MAX}, got ${text}`,
  )
}
