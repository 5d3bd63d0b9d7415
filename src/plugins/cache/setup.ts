import { nextOnce } from '../../arguments/once.ts'
import { scanZoneArgs, scanZoneArgsOrBlock } from '../../arguments/zones.ts'
import { scanDuration } from '../../base/duration.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { printName } from '../../dns/name/name.ts'
import { collectWhileServing } from '../../plugin/collect.ts'
import type { CounterSlots } from '../../plugin/counter-slots.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import {
  Cache,
  CacheCount,
  type CacheOptions,
  type CacheSource,
  type CacheStores,
  type KindOptions,
} from './cache.ts'
import { CacheMemory, createCacheBuffer } from './cache-memory.ts'
import { CacheStore } from './cache-store.ts'

const SUCCESS_TTL_DEFAULT = 3600
const DENIAL_TTL_DEFAULT = 1800
const TTL_MIN_DEFAULT = 5
const ENTRIES_DEFAULT = 9984
const ENTRIES_MIN = 1024
/** 2 GB of memory, as much as one array may have. */
const ENTRIES_MAX = 4_194_304
const SERVFAIL_SECONDS_DEFAULT = 5
const SERVFAIL_SECONDS_MAX = 300
const PREFETCH_GAP_SECONDS = 60
const STALE_SECONDS_DEFAULT = 3600

interface KindDraft extends KindOptions {
  entries: number
  ttlMaxSeconds: number
  ttlMinSeconds: number
  disabled: ZoneSet | undefined
}

type Draft = { -readonly [Key in keyof CacheOptions]: CacheOptions[Key] } & {
  readonly success: KindDraft
  readonly denial: KindDraft
}

/** The memory of both kinds, for the data threads. */
interface SharedCaches {
  readonly success: SharedArrayBuffer
  readonly denial: SharedArrayBuffer
}

/** `cache [TTL] [ZONES...] { … }`: keeps the answers that the plugins below had to wait for. */
export const cache: Directive = {
  name: 'cache',
  setup(c) {
    const options = scanOptions(c)
    const slots = c.counters()
    const source: { stores: CacheStores | undefined } = { stores: undefined }
    const sharedMs = sharedClock(c)
    const storesOf = ({ success, denial }: SharedCaches, isWriter: boolean): CacheStores => {
      const storeOf = (buffer: SharedArrayBuffer, { entries }: KindDraft): CacheStore => {
        const memory = new CacheMemory(buffer, entries)
        return new CacheStore(memory, sharedMs, isWriter ? entries : undefined)
      }
      return {
        success: storeOf(success, options.success),
        denial: storeOf(denial, options.denial),
        sharedMs,
      }
    }
    const broadcast = c.broadcast<SharedCaches>((memory) => {
      source.stores = storesOf(memory, false)
    })
    c.addHandler((next) => new Cache(next, source, options, slots))
    c.onStartup(() => {
      const memory = {
        success: createCacheBuffer(options.success.entries),
        denial: createCacheBuffer(options.denial.entries),
      }
      source.stores = storesOf(memory, true)
      broadcast.publish(memory)
    })
    exportCounts(c, options.zones, slots, source)
  },
}

/** Returns milliseconds of a clock that all threads share, by those of this thread's monotonic clock. */
function sharedClock({ clock }: SetupContext): (monotonicMs: number) => number {
  const offsetMs = Number(process.hrtime.bigint()) / 1e6 - clock.monotonic()
  return (monotonicMs) => monotonicMs + offsetMs
}

function scanOptions(c: SetupContext): Draft {
  const d = c.dispenser
  let draft: Draft | undefined
  for (let uses = 0; nextOnce(d, uses); uses++) {
    const args = d.remainingArgs()
    const ttl = args[0] !== undefined && /^[0-9]+$/.test(args[0]) ? Number(args[0]) : undefined
    if (ttl === 0) throw d.error('cache TTL can not be zero or negative: 0')
    const zones = scanZoneArgsOrBlock(d, ttl === undefined ? args : args.slice(1), c.block)
    const fresh = draftWith(new ZoneSet(zones), ttl)
    draft = fresh
    d.eachProperty(() => scanProperty(d, fresh))
  }
  return draft!
}

function draftWith(zones: ZoneSet, ttl: number | undefined): Draft {
  const kind = (ttlMaxSeconds: number): KindDraft => {
    const ttlMinSeconds = Math.min(TTL_MIN_DEFAULT, ttlMaxSeconds)
    return { entries: ENTRIES_DEFAULT, ttlMaxSeconds, ttlMinSeconds, disabled: undefined }
  }
  return {
    zones,
    success: kind(ttl ?? SUCCESS_TTL_DEFAULT),
    denial: kind(ttl ?? DENIAL_TTL_DEFAULT),
    servfailSeconds: SERVFAIL_SECONDS_DEFAULT,
    prefetchHits: 0,
    prefetchGapSeconds: PREFETCH_GAP_SECONDS,
    prefetchShare: 0.1,
    staleSeconds: 0,
    verifiesStale: false,
    keepsTtl: false,
  }
}

function scanProperty(d: Dispenser, draft: Draft): void {
  const name = d.value()
  const args = d.remainingArgs()
  switch (name) {
    case 'success':
    case 'denial':
      scanKind(d, draft[name], args)
      return
    case 'prefetch':
      scanPrefetch(d, draft, args)
      return
    case 'serve_stale':
      scanStale(d, draft, args)
      return
    case 'servfail': {
      if (args.length !== 1) throw d.argError()
      draft.servfailSeconds = scanSeconds(d, args[0]!)
      if (draft.servfailSeconds > SERVFAIL_SECONDS_MAX) {
        throw d.error(`servfail is longer than 5 minutes: ${JSON.stringify(args[0])}`)
      }
      return
    }
    case 'disable':
      scanDisable(d, draft, args)
      return
    case 'keepttl':
      if (args.length > 0) throw d.argError()
      draft.keepsTtl = true
      return
    default:
      throw d.error(`unknown property '${name}'`)
  }
}

function scanKind(d: Dispenser, kind: KindDraft, args: readonly string[]): void {
  if (args.length === 0 || args.length > 3) throw d.argError()
  const [entries, ttlMax, ttlMin] = args.map((text) => scanCount(d, text))
  if (entries! > ENTRIES_MAX) throw d.error(`more than ${ENTRIES_MAX} entries: ${args[0]}`)
  kind.entries = Math.max(ENTRIES_MIN, entries!)
  if (ttlMax !== undefined) {
    if (ttlMax === 0) throw d.error('cache TTL can not be zero or negative: 0')
    kind.ttlMaxSeconds = ttlMax
  }
  kind.ttlMinSeconds = Math.min(ttlMin ?? TTL_MIN_DEFAULT, kind.ttlMaxSeconds)
  if (ttlMin !== undefined && ttlMin > kind.ttlMaxSeconds) {
    throw d.error(`the minimum TTL is above the maximum: ${ttlMin} > ${kind.ttlMaxSeconds}`)
  }
}

function scanPrefetch(d: Dispenser, draft: Draft, args: readonly string[]): void {
  if (args.length === 0 || args.length > 3) throw d.argError()
  draft.prefetchHits = scanCount(d, args[0]!)
  if (args[1] !== undefined) draft.prefetchGapSeconds = scanSeconds(d, args[1])
  if (args[2] === undefined) return
  const percent = /^([0-9]{1,2})%$/.exec(args[2])
  const share = Number(percent?.[1])
  if (percent === null || share < 10 || share > 90) {
    throw d.error(`the percentage is not in the range 10%..90%: ${JSON.stringify(args[2])}`)
  }
  draft.prefetchShare = share / 100
}

function scanStale(d: Dispenser, draft: Draft, args: readonly string[]): void {
  if (args.length > 2) throw d.argError()
  draft.staleSeconds = args[0] === undefined ? STALE_SECONDS_DEFAULT : scanSeconds(d, args[0])
  const mode = args[1]?.toLowerCase() ?? 'immediate'
  if (mode !== 'immediate' && mode !== 'verify') {
    throw d.error(`serve_stale expects 'immediate' or 'verify', got ${JSON.stringify(args[1])}`)
  }
  draft.verifiesStale = mode === 'verify'
}

function scanDisable(d: Dispenser, draft: Draft, args: readonly string[]): void {
  const [kind, ...zones] = args
  if (kind !== 'success' && kind !== 'denial') {
    throw d.error(`disable expects 'success' or 'denial', got ${JSON.stringify(kind ?? '')}`)
  }
  draft[kind].disabled = new ZoneSet(
    zones.length === 0 ? [Uint8Array.of(0)] : scanZoneArgs(d, zones),
  )
}

function scanCount(d: Dispenser, text: string): number {
  if (!/^[0-9]{1,9}$/.test(text)) throw d.error(`not a number: ${JSON.stringify(text)}`)
  return Number(text)
}

function scanSeconds(d: Dispenser, text: string): number {
  const ms = scanDuration(text)
  if (ms === undefined || ms < 0) throw d.error(`not a duration: ${JSON.stringify(text)}`)
  return ms / 1000
}

function exportCounts(
  c: SetupContext,
  zoneSet: ZoneSet,
  slots: CounterSlots,
  source: CacheSource,
): void {
  const zones = zoneSet.zones.map((zone) => printName(zone)).join(',')
  const labels = ['server', 'zones', 'view'] as const
  const typed = ['server', 'type', 'zones', 'view'] as const
  const counter = (name: string, help: string) =>
    c.metrics.counter(`coredns_cache_${name}`, help, labels)
  const plain = [
    { index: CacheCount.Requests, of: counter('requests_total', 'The count of cache requests.') },
    { index: CacheCount.Misses, of: counter('misses_total', 'The count of cache misses.') },
    {
      index: CacheCount.Prefetches,
      of: counter('prefetch_total', 'The number of times the cache has prefetched a cached item.'),
    },
    {
      index: CacheCount.ServedStale,
      of: counter('served_stale_total', 'The number of requests served from stale cache entries.'),
    },
  ]
  const hits = c.metrics.counter('coredns_cache_hits_total', 'The count of cache hits.', typed)
  const entries = c.metrics.gauge(
    'coredns_cache_entries',
    'The number of elements in the cache.',
    typed,
  )
  collectWhileServing(c, () => {
    slots.forEach((counts, { server, view }) => {
      for (const { index, of } of plain) of.inc({ server, zones, view }, counts.take(index))
      hits.inc({ server, type: 'success', zones, view }, counts.take(CacheCount.SuccessHits))
      hits.inc({ server, type: 'denial', zones, view }, counts.take(CacheCount.DenialHits))
      for (const type of ['success', 'denial'] as const) {
        entries.set({ server, type, zones, view }, source.stores?.[type].entries ?? 0)
      }
    })
  })
}
