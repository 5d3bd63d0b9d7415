import { type Location, ladderOf } from '../location.ts'
import type { Database } from '../mmdb/database.ts'
import { readLocation } from '../mmdb/schema.ts'
import { type Net, placeOf } from '../net.ts'
import { TreeReducer } from './reduce-tree.ts'
import { TrieBuilder } from './trie-builder.ts'

/**
 * Returns the texts of all geo codes that at least one address matches. Reads every entry: takes
 * seconds for a City database.
 */
export function codesIn(databases: readonly Database[], nets: readonly Net[]): Set<string> {
  const codes = new Set<string>()
  const add = (location: Location): void => {
    for (const text of ladderOf(location)) codes.add(text)
  }
  for (const { tree, data } of databases) {
    const seen = new Set([-1])
    const reducer = new TreeReducer(tree, new TrieBuilder(), (entry) => {
      if (!seen.has(entry)) add(readLocation(data, entry))
      seen.add(entry)
      return 0
    })
    reducer.reduce(1)
    reducer.reduce(2)
  }
  for (const { code } of nets) {
    codes.add(code.text)
    if (code.rung !== 'net' && code.rung !== 'asn') add({ net: '', asn: 0, ...placeOf(code) })
  }
  return codes
}
