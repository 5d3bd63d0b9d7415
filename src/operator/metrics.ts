import type { Clock } from '../base/clock.ts'
import type { MetricsRegistry } from '../base/telemetry/metrics.ts'
import { splitKey } from '../kube/object-key.ts'
import type { WorkQueueCounts } from '../kube/work-queue.ts'
import { groupBy } from '../peering/merge/part.ts'
import { labelsOf as labelsOfPeer, type PeerStatus, wasHeard } from '../peering/peer-status.ts'
import { NOTIFY_OUTCOMES, type NotifyOutcome } from './notify/outcome.ts'
import type { Write } from './plan/write.ts'
import type { DnsRecordView } from './record/record-view.ts'
import type { RemoteMetrics, RemoteStatus } from './remotes/remote-clusters.ts'

const RECORD_LABELS = [
  'dns_record_name',
  'dns_record_namespace',
  'dns_record_root_host',
  'dns_record_is_delegating',
] as const
type RecordLabels = { readonly [label in (typeof RECORD_LABELS)[number]]: string }

/** Values that other components count, as of now. */
export interface PublishFacts {
  readonly peers: readonly PeerStatus[]
  readonly queue: Readonly<WorkQueueCounts> & { readonly depth: number; readonly running: number }
  readonly remotes: readonly RemoteStatus[]
  /** Number of faults of other sites: names and clocks. */
  readonly siteFaults: number
  /** The active groups of the zones of all records. */
  readonly groups: readonly GroupStatus[]
}

/** The last lookup of the active groups of a zone. */
export interface GroupStatus {
  /** With the final dot. */
  readonly zone: string
  /** Undefined = not known. */
  readonly groups: readonly string[] | undefined
  /** Why the last query failed; '' = it did not. */
  readonly fault: string
}

/** The operator's metrics. Those that Kuadrant's operator also has use its names. */
export class OperatorMetrics implements RemoteMetrics {
  readonly registry: MetricsRegistry
  readonly #ready
  readonly #recordWrites
  readonly #writes
  readonly #remoteReconciles
  readonly #notifies
  /** Keys of the records that were reconciled, by cluster. */
  readonly #remoteKeys = new Map<string, Set<string>>()
  readonly #leftOut
  readonly #conflicts
  readonly #refused
  readonly #disputed
  readonly #notOwned
  /** Labels of each record whose metrics are set, by key. */
  readonly #labels = new Map<string, RecordLabels>()

  constructor(registry: MetricsRegistry) {
    this.registry = registry
    this.#ready = registry.gauge(
      'dns_provider_record_ready',
      '1 if the record is published, else 0.',
      RECORD_LABELS,
    )
    this.#recordWrites = registry.counter(
      'dns_provider_write_counter',
      'Changes of the published endpoints of a record.',
      ['dns_record_name', 'dns_record_namespace'],
    )
    this.#leftOut = registry.gauge(
      'sextant_operator_endpoints_left_out',
      'Endpoints of other sites without room in the record.',
      ['dns_record_name', 'dns_record_namespace'],
    )
    this.#conflicts = registry.gauge(
      'sextant_operator_endpoint_conflicts',
      'Contradictions with records of other sites, and endpoints of other sites without room.',
      ['dns_record_name', 'dns_record_namespace'],
    )
    this.#refused = registry.gauge(
      'sextant_operator_endpoints_refused',
      'Refused items of peers for a record; the log has a line for each.',
      ['dns_record_name', 'dns_record_namespace'],
    )
    this.#disputed = registry.gauge(
      'sextant_operator_health_disputes',
      'Addresses of a record that some sites report as up and others as down.',
      ['dns_record_name', 'dns_record_namespace'],
    )
    this.#notOwned = registry.gauge(
      'sextant_operator_hosts_not_owned',
      'Hosts of other namespaces that a record has and that are not published.',
      ['dns_record_name', 'dns_record_namespace'],
    )
    this.#writes = registry.counter('sextant_operator_writes_total', 'Writes to the API by kind.', [
      'kind',
    ])
    this.#remoteReconciles = registry.counter(
      'dns_provider_remote_record_reconcile_count',
      'Reconciles of the delegating records of other clusters.',
      ['cluster', 'dns_record_name', 'dns_record_namespace'],
    )
    this.#notifies = registry.counter(
      'sextant_operator_notifies_total',
      'Packets at the port for NOTIFYs by outcome.',
      ['outcome'],
    )
    for (const outcome of NOTIFY_OUTCOMES) this.#notifies.inc({ outcome }, 0)
  }

  setRecord(record: DnsRecordView, isReady: boolean): void {
    const labels = this.#labels.get(record.key) ?? labelsOf(record)
    this.#labels.set(record.key, labels)
    this.#ready.set(labels, isReady ? 1 : 0)
  }

  dropRecord(key: string): void {
    const labels = this.#labels.get(key)
    if (labels === undefined) return
    this.#labels.delete(key)
    this.#ready.remove(labels)
    const { dns_record_name, dns_record_namespace } = labels
    this.#recordWrites.remove({ dns_record_name, dns_record_namespace })
    const gauges = [this.#leftOut, this.#conflicts, this.#refused, this.#disputed, this.#notOwned]
    for (const gauge of gauges) gauge.remove({ dns_record_name, dns_record_namespace })
  }

  /** `count`: 0 = all endpoints fit. */
  setLeftOut(key: string, count: number): void {
    const labels = placeOf(key)
    if (count > 0) this.#leftOut.set(labels, count)
    else this.#leftOut.remove(labels)
  }

  /** 0 = none: the metric is not exported. */
  setDisputes(key: string, conflicts: number, refused: number, disputed: number): void {
    const labels = placeOf(key)
    for (const [gauge, count] of [
      [this.#conflicts, conflicts],
      [this.#refused, refused],
      [this.#disputed, disputed],
    ] as const) {
      if (count > 0) gauge.set(labels, count)
      else gauge.remove(labels)
    }
  }

  /** 0 = none: the metric is not exported. */
  setNotOwned(key: string, count: number): void {
    if (count > 0) this.#notOwned.set(placeOf(key), count)
    else this.#notOwned.remove(placeOf(key))
  }

  countWrite(kind: Write['kind']): void {
    this.#writes.inc({ kind })
  }

  countNotify(outcome: NotifyOutcome): void {
    this.#notifies.inc({ outcome })
  }

  countChange(key: string): void {
    this.#recordWrites.inc(placeOf(key))
  }

  countRemoteReconcile(cluster: string, key: string): void {
    this.#remoteReconciles.inc(remoteLabels(cluster, key))
    const keys = this.#remoteKeys.get(cluster)
    if (keys === undefined) this.#remoteKeys.set(cluster, new Set([key]))
    else keys.add(key)
  }

  forgetRemote(cluster: string, key: string): void {
    if (this.#remoteKeys.get(cluster)?.delete(key) !== true) return
    this.#remoteReconciles.remove(remoteLabels(cluster, key))
  }

  forgetRemoteCluster(cluster: string): void {
    for (const key of this.#remoteKeys.get(cluster) ?? []) this.forgetRemote(cluster, key)
    this.#remoteKeys.delete(cluster)
  }

  /** Calls `read` at every scrape. `ownGroup`: group of this cluster; '' = none. */
  collectFrom(read: () => PublishFacts, clock: Clock, ownGroup = ''): void {
    const gauge = (name: string, help: string, labels: readonly string[] = []) =>
      this.registry.gauge(`sextant_operator_${name}`, help, labels)
    const depth = gauge('queue_depth', 'Records that wait to be reconciled.')
    const running = gauge('queue_running', 'Records that are being reconciled.')
    const reconciles = gauge('reconciles', 'Reconciles since this operator became leader.')
    const failures = gauge(
      'reconcile_failures',
      'Failed reconciles since this operator became leader.',
    )
    const labels = ['peer', 'key', 'site']
    const up = gauge('peer_up', '1 while a peer answers, else 0.', labels)
    const age = gauge('peer_age_seconds', 'Time since the last answer of a peer.', labels)
    const serial = gauge('peer_serial', 'SOA serial of the zone kdrnt of a peer.', labels)
    const endpoints = gauge('peer_endpoints', 'Endpoints that a peer reports.', labels)
    const attempts = gauge('peer_failures', 'Failed requests to a peer.', labels)
    const refused = gauge(
      'peer_refused',
      'Invalid items that a peer reports; the log has a line for each.',
      labels,
    )
    const info = gauge('peer_info', 'Always 1.', [...labels, 'generation'])
    const clusters = this.registry.gauge(
      'dns_provider_active_multi_cluster_count',
      'Other clusters that the operator follows.',
    )
    const records = this.registry.gauge(
      'dns_provider_remote_records',
      'Delegating records of another cluster.',
      ['cluster'],
    )
    const siteFaults = gauge('site_faults', 'Faults in the names and clocks of sites.')
    const showGroups = this.#groupGauges(ownGroup)
    const clusterUp = gauge('cluster_up', '1 while another cluster is followed, else 0.', [
      'cluster',
    ])
    this.registry.onCollect(() => {
      const facts = read()
      depth.set(facts.queue.depth)
      running.set(facts.queue.running)
      reconciles.set(facts.queue.runs)
      failures.set(facts.queue.failures)
      siteFaults.set(facts.siteFaults)
      // Peers appear and disappear with the Secrets.
      for (const one of [up, age, serial, endpoints, attempts, refused, info]) one.reset()
      clusters.set(facts.remotes.filter(({ isFollowed }) => isFollowed).length)
      for (const one of [records, clusterUp]) one.reset()
      for (const { name, records: count, isFollowed } of facts.remotes) {
        records.set({ cluster: name }, count)
        clusterUp.set({ cluster: name }, isFollowed ? 1 : 0)
      }
      showGroups(facts.groups)
      for (const status of facts.peers) {
        const peer = labelsOfPeer(status)
        up.set(peer, status.isUp ? 1 : 0)
        const { lastSeenMs } = status
        if (wasHeard(lastSeenMs)) age.set(peer, (clock.monotonic() - lastSeenMs) / 1000)
        if (status.serial !== undefined) serial.set(peer, status.serial)
        endpoints.set(peer, status.endpoints)
        attempts.set(peer, status.failures)
        refused.set(peer, status.refused)
        info.set({ ...peer, generation: status.generation }, 1)
      }
    })
  }

  /** Returns a function that sets the gauges of the groups. */
  #groupGauges(ownGroup: string): (all: readonly GroupStatus[]) => void {
    const groupsUp = this.registry.gauge(
      'sextant_operator_active_groups_up',
      '1 if the last query for the active groups of a zone succeeded, else 0.',
      ['zone'],
    )
    const groupActive = this.registry.gauge(
      'sextant_operator_group_active',
      '1 if the group is active in the zone, or if the active groups are not known, else 0.',
      ['zone', 'group'],
    )
    return (all) => {
      for (const one of [groupsUp, groupActive]) one.reset()
      // Providers with different nameservers have lookups of their own: the worst one counts.
      for (const [zone, lookups] of groupBy(all, (one) => one.zone)) {
        const isUp = lookups.every(({ groups, fault }) => fault === '' && groups !== undefined)
        groupsUp.set({ zone }, isUp ? 1 : 0)
        if (ownGroup === '') continue
        const isPassive = lookups.some(({ groups }) => groups?.includes(ownGroup) === false)
        groupActive.set({ zone, group: ownGroup }, isPassive ? 0 : 1)
      }
    }
  }
}

function placeOf(key: string): { dns_record_name: string; dns_record_namespace: string } {
  const { namespace, name } = splitKey(key)
  return { dns_record_name: name, dns_record_namespace: namespace }
}

function remoteLabels(cluster: string, key: string) {
  return { cluster, ...placeOf(key) }
}

function labelsOf({ name, namespace, rootHost, spec }: DnsRecordView): RecordLabels {
  return {
    dns_record_name: name,
    dns_record_namespace: namespace,
    dns_record_root_host: rootHost,
    dns_record_is_delegating: String(spec.delegate === true),
  }
}
