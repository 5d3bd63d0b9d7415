import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import type { Timers } from '../../base/timers.ts'
import type { HealthObservation } from '../../health/address-health.ts'
import { RECORD_ADDRESSES_MAX } from '../../health/observed-addresses.ts'
import type { Prober } from '../../health/probes/probe.ts'
import { type ProbeResult, ProbeRunner } from '../../health/probes/probe-runner.ts'
import type { ProbeState } from '../../health/probes/probe-state.ts'
import { type Leaf, probeOfLeaf } from '../../health/record-probes.ts'
import type { DnsRecord } from '../../records/dns-record.ts'

interface PeerProbingParts {
  readonly probe: Prober
  /** Whether the checks skip the verification of certificates. */
  readonly allowsInsecureCertificates: boolean
  /** A finding about an address of a peer has changed, for the record `namespace/name`. */
  readonly onChange: (recordKey: string) => void
  /** Called after every probe, for metrics. */
  readonly onResult: (result: ProbeResult) => void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: Random
}

/** The record whose health check is applied to addresses of peers. */
export interface CheckedRecord {
  readonly namespace: string
  readonly name: string
  readonly content: Pick<DnsRecord, 'rootHost' | 'healthCheck'>
}

/**
 * Probes the addresses that peers report for the hosts of records, with the health checks of these records. The
 * findings are in memory. The operator exports them in `local-<name>`, from where the next leader recalls them.
 */
export class PeerProbing {
  readonly #parts: PeerProbingParts
  readonly #runner: ProbeRunner
  /** Addresses by record. */
  readonly #watched = new Map<string, readonly string[]>()
  /** Findings of an earlier leader about addresses that were not probed yet, by record. */
  readonly #recalled = new Map<string, ReadonlyMap<string, HealthObservation>>()
  readonly #recordOf = new Map<string, string>()

  constructor(parts: PeerProbingParts) {
    this.#parts = parts
    const { clock, timers, random, probe } = parts
    const onResult = (result: ProbeResult): void => this.#note(result)
    this.#runner = new ProbeRunner({ clock, timers, random, probe, onResult })
  }

  /** Sets what an earlier leader found for a record. It counts for the addresses that are watched next. */
  recall(recordKey: string, observations: readonly HealthObservation[]): void {
    const byAddress = new Map(observations.map((one) => [one.address, one]))
    if (byAddress.size === 0) this.#recalled.delete(recordKey)
    else this.#recalled.set(recordKey, byAddress)
  }

  /** Probes these addresses for a record, instead of those before. The first 1000 are probed. */
  watch({ namespace, name, content }: CheckedRecord, leaves: readonly Leaf[]): void {
    const key = `${namespace}/${name}`
    const { healthCheck } = content
    const wanted = healthCheck === undefined ? [] : leaves.slice(0, RECORD_ADDRESSES_MAX)
    const kept = new Set(wanted.map(({ address }) => address))
    for (const address of this.#watched.get(key) ?? []) {
      if (kept.has(address)) continue
      this.#runner.remove(idOf(key, address))
      this.#recordOf.delete(idOf(key, address))
    }
    const { allowsInsecureCertificates: allowsInsecureCertificate } = this.#parts
    for (const leaf of wanted) {
      const check = { ...healthCheck!, allowsInsecureCertificate }
      const id = idOf(key, leaf.address)
      const known = this.#recalled.get(key)?.get(leaf.address)
      this.#recordOf.set(id, key)
      const probe = { ...probeOfLeaf({ namespace, name }, content, check, leaf), id }
      this.#runner.put(probe, known && stateOf(known))
    }
    if (wanted.length > 0) this.#recalled.delete(key)
    if (wanted.length === 0) this.#watched.delete(key)
    else this.#watched.set(key, [...kept])
  }

  /** Stops the probes for a record. */
  forget(key: string): void {
    for (const address of this.#watched.get(key) ?? []) {
      this.#runner.remove(idOf(key, address))
      this.#recordOf.delete(idOf(key, address))
    }
    this.#watched.delete(key)
    this.#recalled.delete(key)
  }

  /** What is known of peers' addresses for a record, in order of the addresses. */
  observationsOf(key: string): readonly HealthObservation[] {
    const recalled = this.#recalled.get(key)
    if (recalled !== undefined) return [...recalled.values()]
    return [...(this.#watched.get(key) ?? [])].sort().flatMap((address) => {
      const { health, sinceMs = 0 } = this.#runner.stateOf(idOf(key, address)) ?? {}
      if (health === undefined || health === 'unknown') return []
      return [{ address, health, sinceSeconds: Math.floor(sinceMs / 1000) }]
    })
  }

  close(): void {
    this.#runner.close()
  }

  #note(result: ProbeResult): void {
    this.#parts.onResult(result)
    const { probe, before, after } = result
    if (before.health !== after.health) this.#parts.onChange(this.#recordOf.get(probe.id) ?? '')
  }
}

/** Another id than that of a DNSHealthCheckProbe: no Kubernetes name has `@`. */
function idOf(recordKey: string, address: string): string {
  return `${recordKey}@${address}`
}

function stateOf({ health, sinceSeconds }: HealthObservation): ProbeState {
  const counts = { failures: 0, successes: 0, httpStatus: 0, reason: '' }
  return { health, sinceMs: sinceSeconds * 1000, ...counts }
}
