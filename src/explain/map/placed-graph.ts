import type { PointSet } from '../../geo/classes/point-orders.ts'
import type { GeoCode } from '../../geo/code.ts'
import type { Locator } from '../../geo/locator.ts'
import { LadderRows } from '../../steering/ladder-rows.ts'
import { pointSetsOf } from '../../steering/policies.ts'
import type { GraphNode, MapGraph } from './map-graph.ts'
import type { TierOf } from './place-shares.ts'
import { ALL_PLACES, type PlacedCell, type PlacedCells } from './placed-cells.ts'

/** Where clients are, and which tiers serve them. */
interface PlacedGraph {
  readonly cells: readonly PlacedCell[]
  readonly tierOf: TierOf
  /** False: the server has other GEO classes now. */
  readonly isSameTable: () => boolean
}

/**
 * Resolves to the clients of all nodes of a graph: with the classes that serve, or for a preview with classes that are
 * made for it.
 */
export async function placeGraph(
  graph: MapGraph,
  cells: PlacedCells,
  isPreview: boolean,
): Promise<PlacedGraph> {
  const steered = graph.nodes.filter(({ set }) => set.keys.length > 0)
  const zones = steered[0]?.set.zones
  // Without a location, clients get the last tier.
  if (zones?.locator === undefined) {
    return { cells: ALL_PLACES, tierOf: ({ set }) => set.keys.length, isSameTable: () => true }
  }
  const { table, locator } = zones
  const isServed = !isPreview && steered.every(({ set }) => set.zones?.table === table)
  if (!isServed) return placeAnew(steered, locator, cells)
  const { snapshot } = table
  const placed = await cells.ofServed(locator, snapshot.trie)
  const { tierOf, trie } = snapshot
  return {
    cells: placed.cells,
    tierOf: ({ set: { policy } }, clientClass) => {
      return policy === undefined ? 0 : tierOf[policy * trie.classCount + clientClass]!
    },
    isSameTable: () => table.trie === trie,
  }
}

async function placeAnew(
  steered: readonly GraphNode[],
  locator: Locator,
  cells: PlacedCells,
): Promise<PlacedGraph> {
  const codes = new Map<string, GeoCode>()
  const pointSets: PointSet[] = []
  for (const { set } of steered) {
    for (const { code } of set.keys) if (code !== undefined) codes.set(code.text, code)
    pointSets.push(...(set.built?.set?.pointSets ?? pointSetsOf(set.keys)))
  }
  const { trie, cells: placed } = await cells.ofCodes(locator, [...codes.values()], pointSets)
  const rows = new LadderRows(trie)
  const rowOf = new Map(
    steered.map((node) => {
      const row = new Uint16Array(trie.classCount)
      rows.fill(row, 0, node.set.keys)
      return [node, row] as const
    }),
  )
  const tierOf: TierOf = (node, clientClass) => rowOf.get(node)?.[clientClass] ?? 0
  return { cells: placed, tierOf, isSameTable: () => true }
}
