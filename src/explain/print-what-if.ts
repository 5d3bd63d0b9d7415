import { printPercent } from './answers.ts'
import type { AddressShares, PlaceShare } from './cell-shares.ts'
import { type MeasuredChange, shareOf, type WhatIf } from './what-if.ts'

const CHANGES_MAX = 50
/** Places that the text lists for one change. */
const PLACES_MAX = 8

const VERBS = {
  added: 'is added',
  removed: 'is removed',
  changed: 'changes',
  leads: 'leads to a change',
} as const

/** Returns the lines of the text that describes the changes. `listsAll`: all of them, and all places. */
export function* printWhatIf({ changes, nameCount }: WhatIf, listsAll = false): Generator<string> {
  const listed = listsAll ? changes : changes.slice(0, CHANGES_MAX)
  for (const change of listed) {
    yield* printChange(change, listsAll ? Number.POSITIVE_INFINITY : PLACES_MAX)
    yield ''
  }
  if (changes.length > listed.length)
    yield `and ${changes.length - listed.length} more with smaller shares; -o wide lists all`
  const [largest] = changes
  const names = Math.max(nameCount.before, nameCount.after)
  if (largest === undefined) yield `no answer changes: ${names} names compared`
  else {
    const what = changes.length === 1 ? '1 RRset changes' : `${changes.length} RRsets change`
    const share = printPercent(shareOf(largest))
    yield `${what}, ${names} names compared; largest share: ${share}, ${largest.name} ${largest.type}`
  }
}

function* printChange(change: MeasuredChange, placesMax: number): Generator<string> {
  const { name, type, kind, shares, via, block } = change
  yield `${name} ${type} ${VERBS[kind]} for ${printFamilies(shares)}, in ${block}`
  const { ttl, tiers } = change.details()
  if (ttl !== undefined) yield `  TTL: ${ttl.before} -> ${ttl.after}`
  for (const { clients, before, after } of tiers)
    yield `  ${clients}: ${before || 'none'} -> ${after || 'none'}`
  if (tiers.length === 0 && kind === 'changed' && ttl === undefined)
    yield '  the shares are the same, but each answer goes to other clients than before'
  if (via.length > 0) yield `  through ${via.join(', ')}`
  if (shares.countries.length > 0) {
    yield `  continents: ${printPlaces(shares.continents, placesMax)}`
    yield `  countries: ${printPlaces(shares.countries, placesMax)}`
  }
}

function printFamilies({ ipv4, ipv6, private4, private6 }: AddressShares): string {
  const parts = [`${printPercent(ipv4)} of IPv4`, `${printPercent(ipv6)} of IPv6`]
  if (private4 > 0) parts.push(`${printPercent(private4)} of private IPv4`)
  if (private6 > 0) parts.push(`${printPercent(private6)} of private IPv6`)
  return parts.join(', ')
}

/** `DE 100 %, FR 12 %`: the larger share of both families. */
function printPlaces(places: readonly PlaceShare[], placesMax: number): string {
  const isWhole = ({ ipv4, ipv6 }: PlaceShare): boolean => Math.max(ipv4, ipv6) >= 0.99995
  const whole = places.filter(isWhole).map(({ code }) => code || 'unknown')
  const parts = places.filter((place) => !isWhole(place))
  const texts = parts.slice(0, placesMax).map(({ code, ipv4, ipv6 }) => {
    return `${code || 'unknown'} ${printPercent(Math.max(ipv4, ipv6))}`
  })
  const more = parts.length - texts.length
  if (more > 0) texts.push(`${more} more`)
  if (whole.length === 0) return texts.join(', ')
  const shown = whole.slice(0, placesMax).join(' ')
  const rest = whole.length > placesMax ? ` and ${whole.length - placesMax} more` : ''
  return [`${shown}${rest} 100 %`, ...texts].join(', ')
}

/** Returns the changes as data for JSON. Shares are numbers from 0 to 1. */
export function jsonOfWhatIf({ changes, nameCount }: WhatIf) {
  return {
    names: nameCount,
    changes: changes.map((change) => {
      const { name, type, block, kind, isNew, via, shares } = change
      return {
        ...{ name, type, block, kind, isNew, via },
        share: shareOf(change),
        ...shares,
        ...change.details(),
      }
    }),
  }
}
