import type { ResourceRegistry } from '../base/resource-registry.ts'

/** Distinguishes sources of the same name, and their health: with peers, every block has its own. */
class SourceNumbers {
  readonly #numbers = new WeakMap<object, number>()
  #count = 0

  of(source: object): number {
    const number = this.#numbers.get(source) ?? ++this.#count
    this.#numbers.set(source, number)
    return number
  }
}

/** Returns the number of a source or its health, which it keeps as long as the process runs. */
export function numberOf(source: object, resources: ResourceRegistry): number {
  return resources.acquire(SourceNumbers, '', () => new SourceNumbers()).item.of(source)
}
