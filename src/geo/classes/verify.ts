import type { Database } from '../mmdb/database.ts'
import { readLocation } from '../mmdb/schema.ts'
import { TreeReducer } from './reduce-tree.ts'
import { TrieBuilder } from './trie-builder.ts'

/**
 * Walks the whole search tree of a database. Throws InputError if a record leads out of the file or
 * in circles, or if no entry holds a place.
 */
export function verifyTree(database: Database): void {
  walk(database, () => 0)
  database.requirePlaces()
}

/** As `verifyTree`, and reads the place out of every entry: seconds for a City database. */
export function verifyEntries(database: Database): void {
  const seen = new Set([-1])
  walk(database, (entry) => {
    if (!seen.has(entry)) readLocation(database.data, entry)
    seen.add(entry)
    return 0
  })
  database.requirePlaces()
}

function walk(database: Database, visit: (entry: number) => number): void {
  const reducer = new TreeReducer(database.tree, new TrieBuilder(), visit)
  reducer.reduce(1)
  reducer.reduce(2)
}
