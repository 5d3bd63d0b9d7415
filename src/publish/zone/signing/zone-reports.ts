import type { ProblemGroup, ProblemText } from '../../../base/telemetry/problems.ts'
import type { SigningReport } from '../../../base/telemetry/status.ts'
import { printSigningFault } from '../../../signing/signing-report.ts'
import type { PublishedZone } from '../published-zone.ts'

type Zone = Pick<PublishedZone, 'text' | 'isServed' | 'signatures'>

/** How the signed ones of some zones are signed. */
export function reportSigning(zones: readonly Zone[]): SigningReport[] {
  return zones.flatMap(({ text, signatures }) => {
    return signatures === undefined ? [] : { zone: text, ...signatures.report }
  })
}

/** Zones and RRsets that cannot be signed. `of`: the server block. */
export function signingProblems(zones: readonly Zone[], of: string): ProblemGroup {
  const problems = zones.flatMap((zone): ProblemText[] => {
    const fault = faultOf(zone)
    const refused = [...(zone.signatures?.refused.reasons ?? [])]
    const reasons = fault === '' ? refused : [fault, ...refused]
    return reasons.map((reason) => ({ place: '', object: `zone ${zone.text}`, reason }))
  })
  return { kind: 'signature', of, count: problems.length, problems }
}

/** Why a zone cannot be signed, and what is served meanwhile; '' = it can. */
export function faultOf({ text, isServed, signatures }: Zone): string {
  const fault = signatures?.fault ?? ''
  return fault === '' ? '' : printSigningFault(text, fault, isServed)
}
