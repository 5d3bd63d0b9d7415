import { scanDuration } from '../base/duration.ts'
import type { Dispenser } from '../corefile/dispenser.ts'
import { nextOnce } from '../plugin/arguments/once.ts'
import { scanZoneArgs, scanZoneArgsOrBlock } from '../plugin/arguments/zones.ts'
import type { BlockConfig } from '../plugin/directive.ts'
import { ZoneSet } from '../zone/lookup/zone-set.ts'
import type { CacheOptions, KindOptions } from './cache.ts'

const SUCCESS_TTL_DEFAULT = 3600
const DENIAL_TTL_DEFAULT = 1800
const TTL_MIN_DEFAULT = 5
const ENTRIES_DEFAULT = 9984
const ENTRIES_MIN = 1024
/** 2 GB of memory, as much as one array may have. */
export const ENTRIES_MAX = 4_194_304
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

/** The options while they are read. */
export type CacheDraft = { -readonly [Key in keyof CacheOptions]: CacheOptions[Key] } & {
  readonly success: KindDraft
  readonly denial: KindDraft
}

/**
 * Reads `cache [TTL] [ZONES...] { … }`. `scanOther` reads properties that this function does not know; it returns
 * false if it does not know them either. Throws InputError.
 */
export function scanCacheOptions(
  d: Dispenser,
  block: BlockConfig,
  scanOther: (d: Dispenser, draft: CacheDraft) => boolean = () => false,
): CacheDraft {
  let draft: CacheDraft | undefined
  for (let uses = 0; nextOnce(d, uses); uses++) {
    const args = d.remainingArgs()
    const ttl = args[0] !== undefined && /^[+-]?[0-9]+$/.test(args[0]) ? Number(args[0]) : undefined
    if (ttl !== undefined && ttl <= 0) {
      throw d.error(`cache TTL can not be zero or negative: ${ttl}`)
    }
    const zones = scanZoneArgsOrBlock(d, ttl === undefined ? args : args.slice(1), block)
    const fresh = draftWith(new ZoneSet(zones), ttl)
    draft = fresh
    d.eachProperty(() => {
      if (!scanOther(d, fresh)) scanProperty(d, fresh)
    })
  }
  return draft!
}

function draftWith(zones: ZoneSet, ttl: number | undefined): CacheDraft {
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
    earlySeconds: 0,
  }
}

const PROPERTIES = [
  'success',
  'denial',
  'prefetch',
  'serve_stale',
  'servfail',
  'disable',
  'keepttl',
]

function scanProperty(d: Dispenser, draft: CacheDraft): void {
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
      throw d.unknownProperty(name, PROPERTIES)
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

function scanPrefetch(d: Dispenser, draft: CacheDraft, args: readonly string[]): void {
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

function scanStale(d: Dispenser, draft: CacheDraft, args: readonly string[]): void {
  if (args.length > 2) throw d.argError()
  draft.staleSeconds = args[0] === undefined ? STALE_SECONDS_DEFAULT : scanSeconds(d, args[0])
  const mode = args[1]?.toLowerCase() ?? 'immediate'
  if (mode !== 'immediate' && mode !== 'verify') {
    throw d.error(`serve_stale expects 'immediate' or 'verify', got ${JSON.stringify(args[1])}`)
  }
  draft.verifiesStale = mode === 'verify'
}

function scanDisable(d: Dispenser, draft: CacheDraft, args: readonly string[]): void {
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

/** Reads a duration; returns seconds. Throws InputError. */
export function scanSeconds(d: Dispenser, text: string): number {
  const ms = scanDuration(text)
  if (ms === undefined || ms < 0) throw d.error(`not a duration: ${JSON.stringify(text)}`)
  return ms / 1000
}
