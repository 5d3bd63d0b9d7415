import { nameKey } from '../dns/name/name.ts'
import { bundledLocator } from '../geo/bundled-locator.ts'
import type { ClassTrie } from '../geo/class-trie.ts'
import { measureCells } from '../geo/classes/class-cells.ts'
import { LOCATOR, type Locator } from '../geo/locator.ts'
import { type JobRunner, runJobInline } from '../geo/worker/run-job.ts'
import { placeOf } from '../plugin/block-place.ts'
import type { BlockConfig } from '../plugin/directive.ts'
import { isLocalZone } from '../records/local-zone.ts'
import { type AddressShares, CellShares } from './cell-shares.ts'
import { NameComparison, type NameDifference } from './compare-names.ts'
import { PlacedLocator } from './placed-locator.ts'
import { type ComparedBlock, ServedNames } from './served-names.ts'

/** A change of one name and type, and for which clients. */
export interface MeasuredChange extends NameDifference {
  /** The server block, as its keys. */
  readonly block: string
  readonly shares: AddressShares
}

/** What another configuration changes. */
export interface WhatIf {
  /** Largest share first. */
  readonly changes: readonly MeasuredChange[]
  /** Names that were compared, before and after. */
  readonly nameCount: { readonly before: number; readonly after: number }
}

/** The zones that one block serves before and one block serves after. */
interface BlockPair {
  readonly before: ComparedBlock | undefined
  readonly after: ComparedBlock | undefined
  readonly apexes: readonly Uint8Array[]
}

/** Two configurations. */
interface Configurations {
  readonly before: readonly ComparedBlock[]
  readonly after: readonly ComparedBlock[]
  /** True if both have the same Corefile and the same databases: only records differ. */
  readonly isEdit: boolean
}

/**
 * Compares the answers of two configurations: for each name and type, the part of the address space
 * whose clients get other records, or other shares of them. Rejects with an InputError if records or
 * databases can't be read.
 */
export async function compareBlocks(blocks: Configurations): Promise<WhatIf> {
  const changes: MeasuredChange[] = []
  const nameCount = { before: 0, after: 0 }
  for (const pair of pairBlocks(blocks)) {
    const block = printKeys((pair.after ?? pair.before)!.block)
    const locators = [placed(pair.before), placed(pair.after)] as const
    const [old, next] = await buildNames(pair, locators, blocks.isEdit)
    nameCount.before += old.names.size
    nameCount.after += next.names.size
    const places = await placesOf(old, locators[0] ?? locators[1])
    const cells = measureCells([old.table.trie.data, next.table.trie.data, places.data])
    const shares = new CellShares(cells, places.codesOf)
    for (const change of new NameComparison(old, next, cells).changes()) {
      changes.push({ ...change, block, shares: shares.of(change.clients) })
    }
  }
  return { changes: changes.sort(byShare), nameCount }
}

function placed(block: ComparedBlock | undefined): PlacedLocator | undefined {
  const locator = block?.block.shared.find(LOCATOR)
  return locator === undefined ? undefined : new PlacedLocator(locator)
}

/** The share that counts for a limit: the larger one of IPv4 and IPv6. */
export function shareOf({ shares }: MeasuredChange): number {
  return Math.max(shares.ipv4, shares.ipv6)
}

export function byShare(a: MeasuredChange, b: MeasuredChange): number {
  const difference = shareOf(b) - shareOf(a)
  if (difference !== 0) return difference
  return a.name < b.name || (a.name === b.name && a.type < b.type) ? -1 : 1
}

async function buildNames(
  { before, after, apexes }: BlockPair,
  locators: readonly [Locator | undefined, Locator | undefined],
  isEdit: boolean,
): Promise<readonly [before: ServedNames, after: ServedNames]> {
  if (isEdit && before !== undefined && after !== undefined) {
    return ServedNames.buildEdit({ block: before, apexes, locator: locators[0] }, after)
  }
  const build = async (block: ComparedBlock | undefined, side: 0 | 1): Promise<ServedNames> => {
    if (block === undefined) return ServedNames.empty()
    return ServedNames.build({ block, apexes, locator: locators[side] })
  }
  return [await build(before, 0), await build(after, 1)]
}

/**
 * Finds, for each zone, the block that serves it before and the one that serves it after: a block with
 * the same keys, addresses and view, or else any with the zone. The zone kdrnt is left out: it has data
 * for peers.
 */
function pairBlocks({ before, after }: Configurations): BlockPair[] {
  const pairs: {
    before: ComparedBlock | undefined
    after: ComparedBlock | undefined
    apexes: Uint8Array[]
  }[] = []
  const add = (
    old: ComparedBlock | undefined,
    next: ComparedBlock | undefined,
    apex: Uint8Array,
  ) => {
    const known = pairs.find((pair) => pair.before === old && pair.after === next)
    if (known === undefined) pairs.push({ before: old, after: next, apexes: [apex] })
    else known.apexes.push(apex)
  }
  const taken = new Set<string>()
  const mark = (block: ComparedBlock, apex: Uint8Array): string => {
    return `${after.indexOf(block)} ${nameKey(apex)}`
  }
  for (const old of before) {
    for (const apex of apexesOf(old)) {
      const having = after.filter((next) => {
        return hasZone(next, apex) && !taken.has(mark(next, apex))
      })
      const place = placeOf(old.block)
      const next = having.find(({ block }) => placeOf(block) === place) ?? having[0]
      if (next !== undefined) taken.add(mark(next, apex))
      add(old, next, apex)
    }
  }
  for (const next of after) {
    for (const apex of apexesOf(next)) if (!taken.has(mark(next, apex))) add(undefined, next, apex)
  }
  return pairs
}

function apexesOf({ zones }: ComparedBlock): Uint8Array[] {
  const byKey = new Map(zones.options.zones.map((apex) => [nameKey(apex), apex]))
  return [...byKey.values()].filter((apex) => !isLocalZone(apex))
}

function hasZone(block: ComparedBlock, apex: Uint8Array): boolean {
  return apexesOf(block).some((other) => nameKey(other) === nameKey(apex))
}

export function printKeys(block: BlockConfig): string {
  const keys = block.keys.map(({ zoneText, port }) => `${zoneText}:${port}`).join(' ')
  return block.viewName === '' ? keys : `${keys} (view ${block.viewName})`
}

/** Returns a trie that distinguishes countries. Without a locator, from the bundled database. */
export async function placesOf(
  { table }: ServedNames,
  locator: PlacedLocator | undefined,
  runJob: JobRunner = runJobInline,
): Promise<ClassTrie> {
  // That of the table has all places, if the table has one.
  if (table.trie.classCount > 1) return table.trie
  if (locator !== undefined) return locator.classify([])
  const bundled = bundledLocator(undefined, runJob)
  try {
    await bundled.open()
    return await new PlacedLocator(bundled).classify([])
  } finally {
    bundled.close()
  }
}
