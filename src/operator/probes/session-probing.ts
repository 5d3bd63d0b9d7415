import type { Cidr } from '../../dns/text/address.ts'
import { attemptCounter, measureProbing } from '../../health/probes/metrics.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import { createProber } from '../../health/probes/prober.ts'
import { systemResolve } from '../../health/probes/resolve.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { OperatorMetrics } from '../metrics.ts'
import { type DelegationRole, decide } from '../plan/decide.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { ClusterProbing } from './cluster-probing.ts'
import { headerSecrets } from './header-secrets.ts'

/** Label value in metrics for the source of the records, as in the server. */
const SOURCE = 'kubernetes'

export interface ProbingSettings {
  /** Whether the checks of records skip the verification of certificates. */
  readonly allowsInsecureCertificates: boolean
  /** Networks that are refused by default and may nevertheless be probed. */
  readonly allowed: readonly Cidr[]
}

export interface SessionProbingParts {
  readonly cluster: Cluster
  readonly metrics: OperatorMetrics
  readonly mayWrite: () => boolean
  readonly role: DelegationRole
}

/**
 * The probing of one leader session. It starts once the probes of the cluster are listed, and ends
 * with the session. Without settings it only removes the results of earlier probes.
 */
export class SessionProbing {
  readonly #parts: SessionProbingParts
  readonly #settings: ProbingSettings | undefined
  #probing: ClusterProbing | undefined
  #stopMeasuring = (): void => {}
  #isClosed = false

  constructor(parts: SessionProbingParts, settings: ProbingSettings | undefined) {
    this.#parts = parts
    this.#settings = settings
    // Without the definition, or without permission to read it, this never happens.
    void parts.cluster.probeInformer.synced().then(() => this.#begin())
  }

  /**
   * Reconciles the probes of the record `namespace/name`, after a change to it or to its provider.
   */
  reconsider(recordKey: string): void {
    this.#probing?.reconsider(recordKey)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#stopMeasuring()
    await this.#probing?.close()
  }

  #begin(): void {
    if (this.#isClosed) return
    const { cluster, metrics, mayWrite } = this.#parts
    const { objects, means } = cluster
    const { clock, timers, random, log } = means
    this.#probing = new ClusterProbing({
      objects,
      records: cluster.recordInformer,
      probes: cluster.probeInformer,
      probe:
        this.#settings &&
        createProber({
          policy: new ProbePolicy(this.#settings.allowed),
          resolve: systemResolve(),
          readHeaders: headerSecrets(objects, clock),
          timers,
        }),
      isOurs: (record) => this.#isOurs(record),
      allowsInsecureCertificates: this.#settings?.allowsInsecureCertificates ?? false,
      mayWrite,
      events: cluster.events,
      onResult: attemptCounter(metrics.registry, SOURCE),
      log,
      clock,
      timers,
      random,
    })
    this.#stopMeasuring = measureProbing(metrics.registry, SOURCE, this.#probing)
  }

  /**
   * True if this operator publishes, delegates or announces the record. Other operators probe their
   * own records, and a rejected record may be theirs.
   */
  #isOurs(record: DnsRecordView): boolean {
    const { cluster, role } = this.#parts
    const { kind } = decide(record, cluster.secretsOf(record.namespace), role)
    return kind === 'publish' || kind === 'delegate' || kind === 'announce'
  }
}
