import type { HealthProbe } from '../../src/dnsrecord/dns-record.ts'
import { packRecord } from '../../src/dnsrecord/pack.ts'
import { validateResource } from '../../src/dnsrecord/validate/resource.ts'
import type {
  ProbeSource,
  RecordChange,
  RecordSource,
  StoredRecord,
} from '../../src/sources/source.ts'
import type { YamlValue } from '../../src/yaml/scan-block-yaml.ts'

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
      ...spec,
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
    },
  })
  if (resource.kind !== 'record') throw new Error(JSON.stringify(resource))
  return { key: `default/${name}`, packed: packRecord(resource.record), down: [] }
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

  put(...records: readonly StoredRecord[]): void {
    const changes = records.map((after) => ({ before: this.#records.get(after.key), after }))
    for (const record of records) this.#records.set(record.key, record)
    for (const listener of this.#listeners) listener(changes)
  }

  remove(key: string): void {
    const before = this.#records.get(key)
    this.#records.delete(key)
    for (const listener of this.#listeners) listener([{ before, after: undefined }])
  }

  /** Puts records in the place of others, at one stroke. */
  replace(keys: readonly string[], ...records: readonly StoredRecord[]): void {
    const gone = keys.map((key) => ({ before: this.#records.get(key), after: undefined }))
    for (const key of keys) this.#records.delete(key)
    for (const record of records) this.#records.set(record.key, record)
    const come = records.map((after) => ({ before: undefined, after }))
    for (const listener of this.#listeners) listener([...gone, ...come])
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
