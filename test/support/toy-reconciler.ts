import { KeyedMutex } from '../../src/operator/delegation/keyed-mutex.ts'
import { Reconciler, type ReconcilerParts } from '../../src/operator/reconcile/reconciler.ts'
import { peerHealthOf, type ToyCluster, ToyPeers } from './operator-cluster.ts'
import type { FakeClock } from './setup.ts'

const HOUR_MS = 3_600_000

/** A reconciler of a cluster in memory, with default settings and without peers. */
export function toyReconciler(
  cluster: ToyCluster,
  clock: FakeClock,
  more: Partial<ReconcilerParts> = {},
): Reconciler {
  const { site = 'here', silentMs = 24 * HOUR_MS } = more
  return new Reconciler({
    view: cluster,
    writer: cluster,
    peers: new ToyPeers(),
    clock,
    listener: { reconciled: () => {}, departed: () => {}, forgot: () => {} },
    site,
    bounds: { minMs: 5000, maxMs: 900_000 },
    silentMs,
    peerHealth: peerHealthOf(site, clock, { silentMs }),
    peersForm: () => 'whole',
    role: 'primary',
    isProbing: true,
    hasCounts: () => true,
    removalTimeoutMs: 24 * HOUR_MS,
    mutex: new KeyedMutex(),
    owners: { rivalOf: () => '', isPresent: () => true },
    ...more,
  })
}
