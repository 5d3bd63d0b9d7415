import type { AddressHealth } from '../../src/health/address-health.ts'
import { HealthTable, type HealthTableOptions } from '../../src/health/health-table.ts'
import type { HealthProbe } from '../../src/records/dns-record.ts'
import { packRecord } from '../../src/records/pack.ts'
import {
  type ProbeSource,
  type RecordChange,
  type RecordSource,
  StoredRecord,
} from '../../src/records/record-source.ts'
import { validateResource } from '../../src/records/validate/resource.ts'
import type { YamlValue } from '../../src/yaml/scan-block-yaml.ts'
import { TestHealth } from '../support/test-health.ts'

/** A record with what a probe found down of it. */
export type TestRecord = StoredRecord & { readonly down?: readonly string[] }

/** A record `default/NAME` for `NAME.k.test` with weighted A endpoints, `address=weight`. */
export function recordOf(
  name: string,
  endpoints: readonly string[],
  spec: { readonly [field: string]: YamlValue } = {},
): StoredRecord {
  const host = `${name}.k.test`
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name },
    spec: {
      rootHost: host,
      endpoints: endpoints.map((text) => {
        const [target = '', weight] = text.split('=')
        return {
          dnsName: host,
          recordType: 'A',
          targets: [target],
          setIdentifier: target,
          providerSpecific: weight === undefined ? [] : [{ name: 'weight', value: weight }],
        }
      }),
      ...spec,
    },
  })
  if (resource.kind !== 'record') throw new Error(JSON.stringify(resource))
  return { key: `default/${name}`, packed: packRecord(resource.record) }
}

/** A DNSHealthCheckProbe of record `default/OWNER`. */
export function probeOf(
  name: string,
  owner: string,
  spec: YamlValue,
  status?: YamlValue,
): HealthProbe {
  const resource = validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSHealthCheckProbe',
    metadata: { name, labels: { 'kuadrant.io/health-probes-owner': owner } },
    spec,
    ...(status === undefined ? {} : { status }),
  })
  if (resource.kind !== 'probe') throw new Error(JSON.stringify(resource))
  return resource.probe
}

/** A source that the test fills. */
export class TestSource implements RecordSource, ProbeSource {
  readonly health = new TestHealth()
  readonly #records = new Map<string, StoredRecord>()
  #probes: readonly HealthProbe[] = []
  readonly #listeners = new Set<(changes: readonly RecordChange[]) => void>()
  readonly #probeListeners = new Set<() => void>()

  get recordCount(): number {
    return this.#records.size
  }

  /** Who listens. */
  get listenerCount(): number {
    return this.#listeners.size + this.#probeListeners.size
  }

  put(...records: readonly TestRecord[]): void {
    this.#change([], records)
  }

  remove(key: string): void {
    this.#change([key], [])
  }

  /** Puts records in the place of others, at one stroke. */
  replace(keys: readonly string[], ...records: readonly TestRecord[]): void {
    this.#change(keys, records)
  }

  #change(removed: readonly string[], put: readonly TestRecord[]): void {
    const changes: RecordChange[] = []
    for (const key of removed) {
      changes.push({ before: this.#records.get(key), after: undefined })
      this.#records.delete(key)
      this.health.put(key)
    }
    for (const { key, packed, down } of put) {
      const before = this.#records.get(key)
      this.health.put(key, down)
      if (before?.packed === packed) continue
      const after = new StoredRecord(key, packed)
      this.#records.set(key, after)
      changes.push({ before, after })
    }
    if (changes.length > 0) for (const listener of this.#listeners) listener(changes)
    this.health.publish()
  }

  putProbes(...probes: readonly HealthProbe[]): void {
    this.#probes = probes
    for (const listener of this.#probeListeners) listener()
  }

  records(): Iterable<StoredRecord> {
    return this.#records.values()
  }

  find(key: string): StoredRecord | undefined {
    return this.#records.get(key)
  }

  probes(): Iterable<HealthProbe> {
    return this.#probes
  }

  problems(): [] {
    return []
  }

  unreadyReason(): string {
    return ''
  }

  subscribe(listener: (changes: readonly RecordChange[]) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  onProbes(listener: () => void): () => void {
    this.#probeListeners.add(listener)
    return () => this.#probeListeners.delete(listener)
  }
}

/** The health of the records of a source, without drains unless `more` has some. */
export function tableOf(
  source: RecordSource & { readonly health?: AddressHealth },
  more: Pick<HealthTableOptions, 'clock' | 'timers' | 'log'> & Partial<HealthTableOptions>,
): HealthTable {
  const found = source.health === undefined ? [] : [source.health]
  return new HealthTable({ source, found, file: undefined, site: '', sitesOf: () => [], ...more })
}
