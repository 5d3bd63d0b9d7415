declare const type: unique symbol

/** Names a value that parts of the program share without importing each other. The folder that owns `T` declares it. */
interface SharedKey<T> {
  /** For a debugger; two keys may have one name. */
  readonly name: string
  readonly [type]?: (value: T) => T
}

/** The key of a value that is made when a part first needs it. */
export interface LazyKey<T> extends SharedKey<T> {
  readonly create: () => T
}

/** Returns a key that equals no other one. */
export function key<T>(name: string): SharedKey<T> {
  return { name }
}

/** As `key`. `create` makes the value when a part first needs it. */
export function lazyKey<T>(name: string, create: () => T): LazyKey<T> {
  return { name, create }
}

/** Values by key. A new kind of value needs no change here. */
export class SharedValues {
  readonly #values = new Map<object, unknown>()

  /** Replaces the value that was provided before. */
  provide<T>(key: SharedKey<T>, value: T): void {
    this.#values.set(key, value)
  }

  /** Undefined if no part has provided a value. */
  find<T>(key: SharedKey<T>): T | undefined {
    return this.#values.get(key) as T | undefined
  }

  acquire<T>(key: LazyKey<T>): T {
    if (!this.#values.has(key)) this.provide(key, key.create())
    return this.find(key)!
  }
}
