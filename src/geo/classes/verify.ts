import type { Database } from '../mmdb/database.ts'
import { readLocation } from '../mmdb/schema.ts'
import { TreeReducer } from './reduce-tree.ts'
import { TrieBuilder } from './trie-builder.ts'

/**
 * Walks the whole search tree of a database. Throws InputError if a record leads out of the file or
 * into a loop, or if no entry contains a place.
 */
export function verifyTree(database: Database): void {
  walk(database, () => 0)
  database.requirePlaces()
}

/** Does the same as `verifyTree`, and reads the place of every entry: takes seconds for a City database. */
export function verifyEntries(database: Database): void {
  database.data.boundReads()
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
