import { type Location, ladderOf } from '../location.ts'
import type { Database } from '../mmdb/database.ts'
import { readCodes, readLocation } from '../mmdb/schema.ts'
import { aspectOf, type Net, placeOf } from '../net.ts'
import { TreeReducer } from './reduce-tree.ts'
import { TrieBuilder } from './trie-builder.ts'

/** What databases and nets know of all addresses. */
export interface GeoCoverage {
  /** Texts of the geo codes that at least one address matches. */
  readonly codes: ReadonlySet<string>
  /** True if at least one address has coordinates. */
  readonly hasCoordinates: boolean
}

/** Reads every entry: takes seconds for a City database. */
export function coverageOf(databases: readonly Database[], nets: readonly Net[]): GeoCoverage {
  const codes = new Set<string>()
  let hasCoordinates = false
  const add = (location: Location): void => {
    for (const text of ladderOf(location)) codes.add(text)
    hasCoordinates ||= location.coordinates !== undefined
  }
  for (const { tree, data } of databases) {
    data.boundReads()
    const seen = new Set([-1])
    const reducer = new TreeReducer(tree, new TrieBuilder(), (entry) => {
      if (!seen.has(entry)) add(hasCoordinates ? readCodes(data, entry) : readLocation(data, entry))
      seen.add(entry)
      return 0
    })
    reducer.reduce(1)
    reducer.reduce(2)
  }
  for (const net of nets) {
    for (const code of net.codes) {
      codes.add(code.text)
      if (aspectOf(code) === 'place') add({ net: '', asn: 0, ...placeOf(code) })
    }
    hasCoordinates ||= net.point !== undefined
  }
  return { codes, hasCoordinates }
}
