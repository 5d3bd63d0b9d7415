import type { Cidr } from '../dns/text/address.ts'
import { AddressSet } from '../dns/text/address-set.ts'
import type { Description } from '../plugin/description.ts'
import type { SetupContext } from '../plugin/directive.ts'
import type { Handler } from '../plugin/handler.ts'
import { Cache, type CacheStores } from './cache.ts'
import { CacheMemory, createCacheBuffer } from './cache-memory.ts'
import { CacheStore } from './cache-store.ts'
import { CacheWriter } from './cache-writer.ts'
import { Variant } from './entry.ts'
import { exportCounts } from './export-counts.ts'
import { type CacheDraft, ENTRIES_MAX } from './options.ts'
import { sharedClock } from './shared-clock.ts'

/** The memory of both kinds, for the data threads. */
interface SharedCaches {
  readonly success: SharedArrayBuffer
  readonly denial: SharedArrayBuffer
}

/** The state of a cache in one thread. */
interface ThreadState {
  stores: CacheStores | undefined
  early: AddressSet
  readonly now: () => number
}

interface StartedCache {
  readonly description: Description
  /** Sets the addresses of the early clients in all threads. */
  readonly setEarly: (addresses: readonly Cidr[]) => void
}

/** Returns the handler `name` of a cache, with its memory and its metrics. */
export function startCache(c: SetupContext, name: string, options: CacheDraft): StartedCache {
  const slots = c.counters()
  const state: ThreadState = {
    stores: undefined,
    early: new AddressSet([]),
    now: () => c.clock.now(),
  }
  const sharedMs = sharedClock(c.clock)
  const success = entriesOf(options)
  const denial = options.denial.entries
  const open = (memory: SharedCaches, isWriter: boolean): void => {
    state.stores = {
      ...openSuccess(memory.success, success, isWriter),
      denial: openStore(memory.denial, denial, isWriter)(Variant.Only),
      sharedMs,
    }
  }
  const openStore = (buffer: SharedArrayBuffer, entries: number, isWriter: boolean) => {
    const memory = new CacheMemory(buffer, entries)
    const writer = isWriter ? new CacheWriter(memory, entries) : undefined
    return (variant: Variant) => new CacheStore(memory, sharedMs, writer, variant)
  }
  const openSuccess = (buffer: SharedArrayBuffer, entries: number, isWriter: boolean) => {
    const storeOf = openStore(buffer, entries, isWriter)
    const late = options.earlySeconds > 0 ? storeOf(Variant.Late) : undefined
    return { success: storeOf(Variant.Only), late }
  }
  const memory = c.broadcast<SharedCaches>((shared) => open(shared, false))
  const setEarly = (addresses: readonly Cidr[]): void => {
    state.early = new AddressSet(addresses)
  }
  const early = c.broadcast<readonly Cidr[]>(setEarly)
  const handler = (next: Handler): Handler => new Cache(name, next, state, options, slots)
  const start = (): void => {
    const shared = { success: createCacheBuffer(success), denial: createCacheBuffer(denial) }
    open(shared, true)
    memory.publish(shared)
  }
  return {
    description: [{ handler, start }, exportCounts(c, options.zones, slots, state)],
    setEarly: (addresses) => {
      setEarly(addresses)
      early.publish(addresses)
    },
  }
}

/** Most entries of positive answers: of each name up to two, if early clients have answers of their own. */
function entriesOf({ success, earlySeconds }: CacheDraft): number {
  return earlySeconds > 0 ? Math.min(2 * success.entries, ENTRIES_MAX) : success.entries
}
