import { isDiscouragedDigest } from '../../dns/dnssec/algorithms.ts'
import { matchesDs } from '../../dns/dnssec/ds.ts'
import { printName } from '../../dns/name/name.ts'
import { tagText } from './key-text.ts'
import type { RollState } from './roll-state.ts'

/** The parent has this long to publish a DS. */
const PARENT_SECONDS_MAX = 86_400

/** What the zone expects of its parent. */
interface ExpectedDs {
  /** All keys of the zone. */
  readonly dnskeys: readonly Uint8Array[]
  /** True = a parent without DS is a fault. */
  readonly isNeeded: boolean
}

/** Returns what is wrong with the DS rdata of a zone in its parent, each with its fix. */
export function dsFaults(
  zone: Uint8Array,
  ds: readonly Uint8Array[],
  { dnskeys, isNeeded }: ExpectedDs,
): readonly string[] {
  const fix = `sextant keys ds ${printName(zone)} prints those that it should have`
  if (ds.length === 0) {
    const effect = 'validators treat the zone as unsigned'
    return isNeeded ? [`the parent has no DS records, so ${effect}; ${fix}`] : []
  }
  const faults: string[] = []
  const unmatched = ds.filter((one) => !dnskeys.some((dnskey) => matchesDs(zone, dnskey, one)))
  if (unmatched.length > 0) {
    const effect =
      unmatched.length === ds.length ? `validators reject the zone; ${fix}` : 'remove them'
    const tags = printTags(unmatched)
    faults.push(`the parent has DS records that no key matches, with ${tags}; ${effect}`)
  }
  const weak = ds.filter((one) => isDiscouragedDigest(one[3]!))
  if (weak.length > 0) {
    const what = 'a digest that should not be used any more (RFC 9905)'
    faults.push(`the parent has DS records with ${what}, with ${printTags(weak)}; ${fix}`)
  }
  return faults
}

/** True if the parent should have a DS by now. */
export function needsDs({ ds }: RollState, nowSeconds: number): boolean {
  return ds.keys.length > 0 && nowSeconds > ds.sinceSeconds + PARENT_SECONDS_MAX
}

function printTags(ds: readonly Uint8Array[]): string {
  const tags = new Set(ds.map((one) => tagText(`+${(one[0]! << 8) | one[1]!}`)))
  return `tag ${[...tags].join(', ')}`
}
