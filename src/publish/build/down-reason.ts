import { RRType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { printAddress } from '../../dns/text/address.ts'
import type { Contribution } from './owner-set.ts'

/** Returns why a target of a record is down; '' = not known. `target`: as `probedName` prints it. */
export type DownReasons = (recordKey: string, target: string) => string

/** Returns why the target with that index into the rdata of an endpoint is down. */
export function downReasonOf(
  { key, endpoint: { type, rdata } }: Pick<Contribution, 'key' | 'endpoint'>,
  index: number,
  reasons: DownReasons,
): string {
  return reasons(key, probedName(type, rdata[index]!)) || guessReason(type)
}

/** The address or host name that a probe would name. */
function probedName(type: number, rdata: Uint8Array): string {
  if (type === RRType.A) return printAddress(rdata, 1)
  if (type === RRType.AAAA) return printAddress(rdata, 2)
  return printName(rdata).slice(0, -1)
}

function guessReason(type: number): string {
  if (type === RRType.CNAME)
    return 'it is reported as down, or all addresses that it leads to are down'
  return 'the status of a DNSHealthCheckProbe reports it as unhealthy'
}
