import { Random } from '../../src/base/random.ts'
import type { PeerObserver } from '../../src/health/observed-addresses.ts'
import { findLeaves, type Leaf, probeOfLeaf } from '../../src/health/record-probes.ts'
import { type ApiObject, textOf } from '../../src/kube/api.ts'
import { desiredProbes } from '../../src/operator/probes/desired-probes.ts'
import { type CheckedRecord, PeerProbing } from '../../src/operator/probes/peer-probing.ts'
import { DnsRecordView } from '../../src/operator/record/record-view.ts'
import { unpackRecord } from '../../src/records/pack.ts'
import type { RecordSource } from '../../src/records/record-source.ts'
import { at } from '../support/operator-objects.ts'
import { FakeClock, FakeTimers } from '../support/setup.ts'

/** Where one site probes the addresses of records with a health check. */
export class ProbePlaces {
  readonly #places = new Map<string, string>()

  /** The probes of a server for its own records. */
  addOwn(records: RecordSource): void {
    for (const { key, packed } of records.records()) {
      this.#add(records, key, findLeaves(unpackRecord(packed).endpoints))
    }
  }

  /** The probes of a server for the addresses of its peers. */
  observe(records: RecordSource): PeerObserver {
    return {
      watch: (key, leaves) => this.#add(records, key, leaves),
      close: () => {},
    }
  }

  /** The probes of an operator for one of its records. */
  addDesired(record: ApiObject): void {
    for (const probe of desiredProbes(new DnsRecordView(record), true)) {
      const [address, port] = [textOf(probe.spec, 'address'), at(probe, 'spec', 'port')]
      this.#places.set(address, `${textOf(probe.spec, 'testAddress') || address}:${port}`)
    }
  }

  /** The probes of an operator for the addresses of its peers. */
  probing(): PeerProbing {
    const note = (...args: Parameters<ProbePlaces['addLeaves']>): void => this.addLeaves(...args)
    const clock = new FakeClock()
    const parts = { clock, timers: new FakeTimers(), random: new Random(1), onResult: () => {} }
    return new (class extends PeerProbing {
      override watch(record: CheckedRecord, leaves: readonly Leaf[]): void {
        note(record, leaves)
      }
    })({
      probe: () => new Promise(() => {}),
      allowsInsecureCertificates: true,
      onChange: () => {},
      ...parts,
    })
  }

  addLeaves({ namespace, name, content }: CheckedRecord, leaves: readonly Leaf[]): void {
    const { healthCheck } = content
    if (healthCheck === undefined) return
    for (const leaf of leaves) {
      const { address, testAddress, check } = probeOfLeaf(
        { namespace, name },
        content,
        healthCheck,
        leaf,
      )
      this.#places.set(address, `${testAddress ?? address}:${check.port}`)
    }
  }

  /** `192.0.2.1 at 198.51.100.1:9000`, in order. */
  print(): string[] {
    return [...this.#places].map(([address, place]) => `${address} at ${place}`).sort()
  }

  #add(records: RecordSource, key: string, leaves: readonly Leaf[]): void {
    const record = records.find(key)
    if (record === undefined) return
    const [namespace = '', name = ''] = key.split('/')
    this.addLeaves({ namespace, name, content: unpackRecord(record.packed) }, leaves)
  }
}
