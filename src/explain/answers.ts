import { printLatin1 } from '../base/latin1.ts'
import { printRdata } from '../dns/rdata/index.ts'
import type { Tier } from '../steering/tiers.ts'
import type { RRsetData } from '../zone/image/types.ts'

/** Most outcomes that are printed of one tier. */
const PRINTED_MAX = 8

/**
 * Returns a text that two tiers have in common if clients get the same records from both with the same
 * shares. The TTL does not count: it does not change where clients go. `answers`: number of outcomes that a
 * client gets.
 */
export function answersKey(tier: Tier, answers: number, rdata: readonly Uint8Array[]): string {
  const shares = sharesKey(tier, rdata)
  return answers > 1 ? `${answers} of ${shares}` : shares
}

function sharesKey(tier: Tier, rdata: readonly Uint8Array[]): string {
  if (tier.length === 1) return recordsKey(tier[0]!.rdataIndexes, rdata)
  const weightByRecords = new Map<string, number>()
  for (const { weight, rdataIndexes } of tier) {
    const key = recordsKey(rdataIndexes, rdata)
    weightByRecords.set(key, (weightByRecords.get(key) ?? 0) + weight)
  }
  if (weightByRecords.size === 1) return [...weightByRecords.keys()][0]!
  const divisor = [...weightByRecords.values()].reduce(greatestCommonDivisor)
  const shares = [...weightByRecords].map(([key, weight]) => `${weight / divisor}:${key}`)
  return shares.sort().join('|')
}

function recordsKey(indexes: readonly number[], rdata: readonly Uint8Array[]): string {
  const texts = indexes.map((index) => printLatin1(rdata[index]!))
  // A length before each text, because rdata may contain any octet.
  return texts
    .sort()
    .map((text) => `${text.length},${text}`)
    .join('')
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

/**
 * `192.0.2.1+192.0.2.2 75 %, 192.0.2.3 25 %`. If a client gets several outcomes, `2 of 192.0.2.1 75 %, …` with
 * the shares of the first one.
 */
export function printAnswers(tier: Tier, answers: number, { type, rdata }: RRsetData): string {
  const sum = tier.reduce((total, { weight }) => total + weight, 0)
  const texts = tier.slice(0, PRINTED_MAX).map(({ weight, rdataIndexes }) => {
    const records = rdataIndexes
      .slice(0, PRINTED_MAX)
      .map((index) => printRdata(type, rdata[index]!))
    const more = rdataIndexes.length - records.length
    const all = more > 0 ? [...records, `${more} more`] : records
    return `${all.join('+') || 'NODATA'} ${printPercent(weight / sum)}`
  })
  const more = tier.length - texts.length
  const all = more > 0 ? `${texts.join(', ')} and ${more} more` : texts.join(', ')
  return answers > 1 ? `${answers} of ${all}` : all
}

/** `12.3 %`, with two significant digits at least. A share above 0 is never printed as 0. */
export function printPercent(part: number): string {
  const percent = part * 100
  if (percent === 0 || percent >= 99.995) return `${Math.round(percent)} %`
  if (percent < 0.01) return '< 0.01 %'
  const text = percent < 10 ? percent.toFixed(2) : percent.toFixed(1)
  return `${text.replace(/\.?0+$/, '')} %`
}
