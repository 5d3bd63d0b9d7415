import { didYouMean } from '../../base/nearest.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { SOURCE_WORDS } from '../../sources/objects/source-words.ts'
import { type SourcePlace, withKinds } from '../../sources/source-place.ts'

/** Reads `sources KIND...`. Returns the words in the order of `SOURCE_WORDS`. */
export function scanSources(d: Dispenser): readonly string[] {
  const words = d.remainingArgs(1)
  for (const word of words) {
    if (SOURCE_WORDS.includes(word)) continue
    const known = `the kinds are ${SOURCE_WORDS.join(', ')}`
    throw d.error(`sources: unknown kind ${word}; ${known}${didYouMean(word, SOURCE_WORDS)}`)
  }
  return SOURCE_WORDS.filter((word) => words.includes(word))
}

/** Returns the place with these kinds of objects; undefined = DNSRecords only. */
export function sourceWith(
  kinds: readonly string[] | undefined,
  place: SourcePlace,
  d: Dispenser,
): SourcePlace {
  if (kinds === undefined) return place
  const found = withKinds(place, kinds)
  if (found !== undefined) return found
  throw d.error('sources and manifests exclude each other: sources needs a cluster')
}
