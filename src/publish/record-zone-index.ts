import type { RecordZone } from './build/record-zone.ts'

/** A zone of DNSRecords in service. */
interface IndexedZone {
  readonly apex: Uint8Array
  /** Its name, absolute. */
  readonly text: string
  readonly records: RecordZone
}

/** All zones of DNSRecords that the process serves. */
export class RecordZoneIndex {
  readonly #all = new Set<() => readonly IndexedZone[]>()

  /** Returns the function that removes them. */
  add(zones: () => readonly IndexedZone[]): () => void {
    this.#all.add(zones)
    return () => this.#all.delete(zones)
  }

  get zones(): readonly IndexedZone[] {
    return [...this.#all].flatMap((zones) => zones())
  }
}
