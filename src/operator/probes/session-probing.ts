import type { Cidr } from '../../dns/text/address.ts'
import { attemptCounter, measureProbing } from '../../health/probes/metrics.ts'
import type { Prober } from '../../health/probes/probe.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import { createProber } from '../../health/probes/prober.ts'
import { systemResolve } from '../../health/probes/resolve.ts'
import type { Cluster } from '../cluster/cluster.ts'
import type { OperatorMetrics } from '../metrics.ts'
import { type DelegationRole, decide } from '../plan/decide.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { ClusterProbing } from './cluster-probing.ts'
import { headerSecrets } from './header-secrets.ts'
import { PeerProbing } from './peer-probing.ts'

/** Label value in metrics for the source of the records, as in the server. */
const SOURCE = 'kubernetes'

export interface ProbingSettings {
  /** Whether the checks of records skip the verification of certificates. */
  readonly allowsInsecureCertificates: boolean
  /** Networks that are refused by default and may nevertheless be probed. */
  readonly allowed: readonly Cidr[]
}

interface SessionProbingParts {
  readonly cluster: Cluster
  readonly metrics: OperatorMetrics
  readonly mayWrite: () => boolean
  readonly role: DelegationRole
  /** A finding about an address of a peer has changed, for the record `namespace/name`. */
  readonly onFinding: (recordKey: string) => void
}

/**
 * The probing of one leader session. It starts once the probes of the cluster are listed, and ends
 * with the session. Without settings it only removes the results of earlier probes.
 */
export class SessionProbing {
  readonly #parts: SessionProbingParts
  readonly #settings: ProbingSettings | undefined
  /** Probes addresses of peers. It needs no DNSHealthCheckProbes. Undefined = nothing is probed. */
  readonly ofPeers: PeerProbing | undefined
  readonly #probe: Prober | undefined
  #probing: ClusterProbing | undefined
  #stopMeasuring = (): void => {}
  #isClosed = false

  constructor(parts: SessionProbingParts, settings: ProbingSettings | undefined) {
    this.#parts = parts
    this.#settings = settings
    if (settings !== undefined) {
      const { objects, env } = parts.cluster
      const { clock, timers, random } = env
      const { allowed, allowsInsecureCertificates } = settings
      this.#probe = createProber({
        policy: new ProbePolicy(allowed),
        resolve: systemResolve(),
        readHeaders: headerSecrets(objects, clock),
        timers,
      })
      this.ofPeers = new PeerProbing({
        ...{ probe: this.#probe, allowsInsecureCertificates, clock, timers, random },
        onChange: parts.onFinding,
        onResult: attemptCounter(parts.metrics.registry, SOURCE),
      })
    }
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
    this.ofPeers?.close()
    await this.#probing?.close()
  }

  #begin(): void {
    if (this.#isClosed) return
    const { cluster, metrics, mayWrite } = this.#parts
    const { objects, env } = cluster
    const { clock, timers, random, log } = env
    this.#probing = new ClusterProbing({
      objects,
      records: cluster.recordInformer,
      probes: cluster.probeInformer,
      probe: this.#probe,
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
