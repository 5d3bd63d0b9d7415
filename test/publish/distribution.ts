import { printType } from '../../src/dns/iana/types.ts'
import { scanName } from '../../src/dns/name/name.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import { type DownSet, printOut } from '../../src/publish/build/all-down.ts'
import type { OwnerSet } from '../../src/publish/build/owner-set.ts'
import type { RecordZone } from '../../src/publish/build/record-zone.ts'
import { sortIntoTiers } from '../../src/steering/tiers.ts'

/** Everything that decides the answers, for each class of clients, in an order that means nothing. */
export function distribution(records: RecordZone, owner: string) {
  const { out } = records
  const all = records.explain(scanName(`${owner}.`)!, { dropped() {}, kept() {} })
  const sets = all.map((set) => [printType(set.type), printSet(set)] as const)
  return {
    sets: new Map(sets.sort(([a], [b]) => (a < b ? -1 : 1))),
    out: [...out.allDown, ...out.exhausted].map(printDown).sort(),
    drained: out.drainedCount,
  }
}

function printDown({ set, lists, allDown }: DownSet): string {
  return `${set} ${printOut({ set, lists: lists && [...lists].sort(), allDown })}`
}

function printSet(set: OwnerSet) {
  const { type, ttlSeconds, rdata, candidates, sticky, answers, pointSets } = set
  const texts = rdata.map((one) => printRdata(type, one))
  const isEmpty = candidates.length === 0
  const { keys, tiers } = isEmpty ? { keys: [], tiers: [] } : sortIntoTiers(candidates, type, set)
  return {
    ttlSeconds,
    sticky,
    answers,
    points: pointSets?.map((points) => points.map(({ text }) => text).join(' ')).sort(),
    tiers: tiers.map((tier, i) => {
      const outcomes = tier.map(({ weight, rdataIndexes, seed }) => {
        const targets = rdataIndexes.map((index) => texts[index]!).sort()
        // The one outcome of a tier needs no seed.
        return `${weight} ${tier.length === 1 ? '' : seed?.join('.')}: ${targets.join(' ')}`
      })
      return [keys[i]?.text ?? '', ...outcomes.sort()]
    }),
  }
}
