import type { Clock } from '../base/clock.ts'
import { runInSlices } from '../base/slices.ts'
import { guarding } from '../base/telemetry/guard.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Gauge, MetricsRegistry } from '../base/telemetry/metrics.ts'
import type { ProblemGroup, ProblemText } from '../base/telemetry/problems.ts'
import type { Timers } from '../base/timers.ts'
import { versionRecords } from '../xfr/journal/version-records.ts'
import { VersionView } from '../xfr/journal/version-view.ts'
import { ZoneReader } from '../zone/image/reader.ts'
import {
  checkSignatures,
  type SignatureExpiry,
  type SignatureReport,
  SOON_SECONDS,
} from '../zone/zonefile/check-signatures.ts'

/** How often zones are checked. */
const TICK_MS = 60_000
/** Least time between two equal warnings, and between two warnings about the expiry of one zone. */
const WARNING_MS = 86_400_000
/** A long check is repeated less often: the pause is this many times as long as the check. */
const PAUSE_FACTOR = 50

/** A zone in the form of its owner, on the control thread. */
export interface WatchedZone {
  readonly zone: Uint8Array
  readonly zoneText: string
  readonly serial: number
  readonly shared: { readonly buffer: SharedArrayBuffer } | undefined
  /** What the owner found in this version, and logged; undefined = the owner did not check it. */
  readonly signatures?: SignatureReport | undefined
}

interface Watched {
  /** The report of the owner, or the serial of the version that was checked here. */
  version: SignatureReport | number
  expiry: SignatureExpiry | undefined
  /** Warning of the last check. */
  warning: string
  /** Time of the last warning; monotonic, as all times here. */
  warnedMs: number
  /** When the next check may start. */
  nextMs: number
}

/**
 * Watches the signatures of zones while they are served. Checks the versions that their owners did
 * not check: those after an IXFR. Warns once a day of signatures that have expired or expire soon.
 */
export class SignatureWatch {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #metrics: MetricsRegistry
  readonly #watched = new Map<string, Watched>()
  #zones: readonly WatchedZone[] = []
  #isBusy = false
  #gauge: Gauge | undefined
  /** Undefined = stopped. */
  #timers: Timers | undefined
  #stopMeasuring: (() => void) | undefined
  #stopTicks: (() => void) | undefined

  constructor(parts: {
    readonly clock: Clock
    readonly log: Logger
    readonly metrics: MetricsRegistry
  }) {
    this.#clock = parts.clock
    this.#log = parts.log
    this.#metrics = parts.metrics
  }

  start(timers: Timers): void {
    this.#timers = timers
    this.#stopMeasuring = this.#metrics.onCollect(() => this.#measure())
    this.#schedule()
  }

  stop(): void {
    this.#timers = undefined
    this.#zones = []
    this.#schedule()
    this.#stopMeasuring?.()
  }

  /** Replaces the zones that are watched. */
  follow(zones: readonly WatchedZone[]): void {
    this.#zones = zones
    this.#schedule()
  }

  /** Zones whose signatures are invalid, have expired, or expire soon. `of`: the directive and its server block. */
  problemGroup(of: string): ProblemGroup {
    const problems = this.#zones.flatMap((zone) => this.#problemOf(zone) ?? [])
    return { kind: 'signature', of, count: problems.length, problems }
  }

  #problemOf({ zoneText, shared, signatures }: WatchedZone): ProblemText | undefined {
    if (shared === undefined) return undefined
    const watched = this.#watched.get(zoneText)
    const warning = signatures?.warning?.print() ?? watched?.warning ?? ''
    const expiry = signatures?.expiry ?? watched?.expiry
    const reason = warning || (expiry && this.#printExpiry(zoneText, expiry)) || ''
    return reason === '' ? undefined : { place: '', object: `zone ${zoneText}`, reason }
  }

  /** A server without signed zones needs no timer. */
  #schedule(): void {
    const isNeeded = this.#zones.some(needsWatch)
    if (!isNeeded || this.#timers === undefined) {
      this.#stopTicks?.()
      this.#stopTicks = undefined
      for (const zone of this.#watched.keys()) this.#gauge?.remove({ zone })
      this.#watched.clear()
    } else if (this.#stopTicks === undefined) {
      const guarded = guarding(this.#log, 'Checking signatures')
      this.#stopTicks = this.#timers.every(TICK_MS, () => void guarded(() => this.#check()))
    }
  }

  async #check(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    try {
      const gone = new Set(this.#watched.keys())
      for (const zone of this.#zones) {
        gone.delete(zone.zoneText)
        await this.#checkZone(zone)
      }
      for (const zone of gone) {
        this.#watched.delete(zone)
        this.#gauge?.remove({ zone })
      }
    } finally {
      this.#isBusy = false
    }
  }

  async #checkZone(zone: WatchedZone): Promise<void> {
    const { serial, shared, signatures, zoneText } = zone
    if (shared === undefined) return
    const nowMs = this.#clock.monotonic()
    const known = this.#watched.get(zoneText)
    if (known?.version === (signatures ?? serial)) this.#warnOfExpiry(zoneText, known, nowMs)
    else if (signatures !== undefined) this.#replace(zoneText, signatures, signatures, nowMs)
    else if (known === undefined || nowMs >= known.nextMs) {
      const report = await this.#report(zone, shared.buffer)
      if (report === undefined || this.#timers === undefined) return
      const text = report.warning?.print() ?? ''
      const isRepeated = text === known?.warning && nowMs - known.warnedMs < WARNING_MS
      if (text !== '' && !isRepeated) this.#log.warning(text, 'zone-signatures-expire')
      const watched = this.#replace(zoneText, report, serial, nowMs)
      if (isRepeated) watched.warnedMs = known.warnedMs
      watched.nextMs = nowMs + (this.#clock.monotonic() - nowMs) * PAUSE_FACTOR
    }
  }

  async #report(
    { zone, serial }: WatchedZone,
    buffer: SharedArrayBuffer,
  ): Promise<SignatureReport | undefined> {
    const { version: imageVersion } = new ZoneReader({ buffer })
    const view = VersionView.open({ zone, serial, buffer, imageVersion })
    if (view === undefined) return undefined
    const records = await runInSlices(versionRecords(view), this.#clock)
    return runInSlices(checkSignatures(records, zone, this.#nowSeconds()), this.#clock)
  }

  #replace(
    zoneText: string,
    { expiry, warning }: SignatureReport,
    version: SignatureReport | number,
    nowMs: number,
  ): Watched {
    const text = warning?.print() ?? ''
    const warnedMs = text === '' ? Number.NEGATIVE_INFINITY : nowMs
    const watched = { version, expiry, warning: text, warnedMs, nextMs: nowMs }
    this.#watched.set(zoneText, watched)
    return watched
  }

  #warnOfExpiry(zoneText: string, watched: Watched, nowMs: number): void {
    const { expiry, warnedMs } = watched
    if (expiry === undefined || nowMs - warnedMs < WARNING_MS) return
    const text = this.#printExpiry(zoneText, expiry)
    if (text === '') return
    watched.warnedMs = nowMs
    this.#log.warning(text, 'zone-signatures-expire')
  }

  /** Returns '' if the signatures are valid for long enough. */
  #printExpiry(zoneText: string, { seconds, rrset }: SignatureExpiry): string {
    const left = seconds - this.#nowSeconds()
    if (left >= SOON_SECONDS) return ''
    const event = left < 0 ? 'signatures have expired' : 'signatures expire soon'
    const when = new Date(seconds * 1000).toISOString()
    return /* warning */ `${event}: zone ${zoneText}, first ${rrset} at ${when}; sign the zone again`
  }

  #measure(): void {
    for (const [zone, { expiry }] of this.#watched) {
      if (expiry === undefined) this.#gauge?.remove({ zone })
      else {
        this.#gauge ??= this.#metrics.gauge(
          'sextant_zone_signatures_expire_timestamp_seconds',
          'Time at which the first RRset of a signed zone loses its last valid signature.',
          ['zone'],
        )
        this.#gauge.set({ zone }, expiry.seconds)
      }
    }
  }

  #nowSeconds(): number {
    return Math.floor(this.#clock.now() / 1000)
  }
}

/** False for a zone whose owner found no signatures. */
function needsWatch({ shared, signatures }: WatchedZone): boolean {
  if (shared === undefined) return false
  return signatures === undefined || signatures.expiry !== undefined
}
