import type { ResourceRegistry } from '../base/resource-registry.ts'
import type { RecordSource } from '../dnsrecord/record-source.ts'

/** Distinguishes sources of the same name: with peers, every block has its own source. */
class SourceNumbers {
  readonly #numbers = new WeakMap<RecordSource, number>()
  #count = 0

  of(source: RecordSource): number {
    const number = this.#numbers.get(source) ?? ++this.#count
    this.#numbers.set(source, number)
    return number
  }
}

/** Returns the number of a source, which it keeps as long as the process runs. */
export function numberOf(source: RecordSource, resources: ResourceRegistry): number {
  return resources.acquire(SourceNumbers, '', () => new SourceNumbers()).item.of(source)
}
