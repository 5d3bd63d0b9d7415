import { equalNames, scanName } from '../dns/name/name.ts'

/** Top-level domain of the gateway-local form, without a final dot. */
export const KDRNT = 'kdrnt'
export const KDRNT_ZONE: Uint8Array = scanName(`${KDRNT}.`)!

/** True if the zone serves the gateway-local forms. */
export function isLocalZone(zone: Uint8Array): boolean {
  return equalNames(zone, KDRNT_ZONE)
}
