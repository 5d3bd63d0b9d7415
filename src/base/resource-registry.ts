import { assert } from './assert.ts'

/** A class whose objects are shared. */
type ResourceClass<T> = abstract new (...args: never[]) => T

/** One use of a shared resource. */
export interface ResourceLease<T> {
  readonly item: T
  /** Ends the use; only the first call counts. */
  readonly release: () => void
}

interface Use {
  readonly item: object
  users: number
}

/**
 * Resources that several users share, such as the blocks of one Corefile and both instances of a
 * reload. The class and a key identify a resource. The first user creates it. The last release
 * removes it, and closes it if it has a method `close`.
 */
export class ResourceRegistry {
  readonly #uses = new Map<unknown, Map<string, Use>>()

  /** Returns the resource with that class and key. Calls `create` if no user holds it. */
  acquire<T extends object>(
    type: ResourceClass<T>,
    key: string,
    create: () => T,
  ): ResourceLease<T> {
    const uses = this.#uses.get(type) ?? new Map<string, Use>()
    this.#uses.set(type, uses)
    const use = uses.get(key) ?? { item: create(), users: 0 }
    uses.set(key, use)
    use.users++
    let isReleased = false
    const release = (): void => {
      if (isReleased) return
      isReleased = true
      if (--use.users > 0) return
      uses.delete(key)
      if (isClosable(use.item)) use.item.close()
    }
    return { item: checked(type, use), release }
  }

  /** Returns the resource with that class and key, without a use of it; undefined = none. */
  find<T extends object>(type: ResourceClass<T>, key: string): T | undefined {
    const use = this.#uses.get(type)?.get(key)
    return use === undefined ? undefined : checked(type, use)
  }

  /** Returns the resources of that class whose keys have this prefix, without uses of them. */
  withPrefix<T extends object>(type: ResourceClass<T>, prefix: string): T[] {
    const uses = [...(this.#uses.get(type) ?? [])]
    return uses.filter(([key]) => key.startsWith(prefix)).map(([, use]) => checked(type, use))
  }
}

function checked<T>(type: ResourceClass<T>, { item }: Use): T {
  assert(item instanceof type, 'a resource is registered under its class')
  return item
}

function isClosable(item: object): item is { close(): void } {
  return 'close' in item && typeof item.close === 'function'
}
