import type { OwnedZone } from '../../authority/owned-zone.ts'
import { answererOf, nextVersion, type VersionMemory } from '../../authority/version-memory.ts'
import { assert } from '../../base/assert.ts'
import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import { runInSlices } from '../../base/slices.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { SpanRecorder } from '../../base/telemetry/spans/span.ts'
import type { Timers } from '../../base/timers.ts'
import { fetchZone } from '../../client/fetch-zone.ts'
import { addressOfHost, type HostPort } from '../../dns/host-port.ts'
import { Rcode, RRClass, RRType } from '../../dns/iana/index.ts'
import type { ResourceRecord } from '../../dns/message/message.ts'
import { printName } from '../../dns/name/name.ts'
import { isSerialAfter } from '../../dns/serial.ts'
import type { TsigKey } from '../../dns/tsig/key.ts'
import { isFull, StepsPlan } from '../../xfr/in/apply-steps.ts'
import {
  type Received,
  type SoaTimers,
  soaTimers,
  TransferFault,
} from '../../xfr/in/transfer-reader.ts'
import { VersionView } from '../../xfr/journal/version-view.ts'
import { ZoneRefresher } from '../../xfr/zone-refresher.ts'
import type { SetKey } from '../../xfr/zone-versions.ts'
import { adoptArena } from '../../zone/image/adopt.ts'
import { ZoneImage } from '../../zone/image/writer.ts'
import type { ZoneAnswerer } from '../../zone/lookup/answer.ts'
import type { SignatureReport } from '../../zone/zonefile/check-signatures.ts'
import { loadWithoutPause } from '../../zone/zonefile/load-in-thread.ts'

/**
 * Pause after the first failed attempt to get any version; it doubles with each further failure.
 */
const FIRST_RETRY_MS = 250
const FIRST_RETRY_MS_MAX = 10_000
/** Minimum time between two queries to a primary, however many NOTIFYs arrive. */
const GAP_MS = 1000
/** Minimum of the SOA's refresh and retry, in seconds. */
const TIMER_SECONDS_MIN = 1
/** Minimum of the SOA's expire, in seconds. */
const EXPIRE_SECONDS_MIN = 600
/** A refresh comes earlier than the SOA says by up to this part, so that zones do not refresh all at once. */
const JITTER = 0.1

interface SecondaryOptions {
  readonly resources: ResourceRegistry
  readonly zone: Uint8Array
  readonly primaries: readonly HostPort[]
  /** Distinguishes the server block from others. */
  readonly place: string
  readonly sourceFor: (primary: HostPort) => string
  readonly key: () => TsigKey | undefined
  readonly nsInAuthority: boolean
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Logger
  /** Uniform over 0..1. */
  readonly random: () => number
  readonly onTransfer: (kind: 'AXFR' | 'IXFR' | 'none' | 'failed') => void
  /** Records a span of each attempt; undefined = none. */
  readonly spans?: () => SpanRecorder | undefined
  /** Called when the zone has another version, or none any more. */
  readonly onChange: () => void
  /** Runs a transfer from the primary of that address once there is room for it. */
  readonly queue: (hostOf: () => string, transfer: () => Promise<void>) => Promise<void>
}

/** The running instances of one zone, in the order of their starts: during a reload, an old and a new one. */
class ZoneInstances {
  readonly zones = new Set<SecondaryZone>()
}

/** The version that is served. */
interface Held {
  readonly image: ZoneImage
  readonly soa: ResourceRecord
  readonly timers: SoaTimers
  /**
   * False after a failed write, or if the image belongs to another instance. No differences are
   * applied to it then.
   */
  isSound: boolean
}

/**
 * A secondary zone. It queries its primaries when the SOA says so or a NOTIFY arrives, and loads
 * newer versions. If no primary confirms the zone within the SOA's expire time, the server stops
 * serving it (RFC 1034 section 4.3.5).
 */
export class SecondaryZone implements OwnedZone {
  readonly zone: Uint8Array
  readonly zoneText: string
  answerer: ZoneAnswerer | undefined
  isElsewhere = false
  shared: VersionMemory | undefined
  serial = -1
  changed: readonly SetKey[] | undefined
  /** Report on the served version; undefined = it came by IXFR, or before a reload. */
  signatures: SignatureReport | undefined
  readonly #options: SecondaryOptions
  #held: Held | undefined
  #instances: ResourceLease<ZoneInstances> | undefined
  readonly #refresher: ZoneRefresher
  /** Applying differences failed: the next request is for the whole zone. */
  #wantsAll = false
  #lastFault = ''
  /** Monotonic milliseconds. */
  #confirmedMs = 0
  /** Index of the primary to query first. */
  #first = 0

  constructor(options: SecondaryOptions) {
    this.zone = options.zone
    this.zoneText = printName(options.zone)
    this.#options = options
    const { clock, timers, log, queue } = options
    this.#refresher = new ZoneRefresher({
      clock,
      timers,
      guarded: guarding(log, `Transferring zone ${this.zoneText}`),
      refresh: () => this.#refresh(),
      pauseMs: (failures) => this.#pauseMs(failures),
      gapMs: GAP_MS,
      queue: (transfer) => queue(() => this.#host, transfer),
      expiryMs: () => this.#expiryMs,
      expire: () => this.#expire(),
    })
  }

  /** Keeps the zone current from now on. */
  start(): void {
    this.#refresher.start()
  }

  /** Why it can't be transferred; '' = it can. */
  get fault(): string {
    return this.#lastFault === '' ? '' : this.#printFault(this.#lastFault)
  }

  get isStopped(): boolean {
    return this.#refresher.signal.aborted
  }

  /** Resolves when the current refresh ends. */
  settled(): Promise<void> {
    return this.#refresher.settled()
  }

  /** Serves the version of the previous instance, if there is one, until a primary has a newer one. */
  adopt(): void {
    const { resources, nsInAuthority } = this.#options
    this.#instances = resources.acquire(ZoneInstances, this.#key, () => new ZoneInstances())
    const { zones } = this.#instances.item
    const found = [...zones].findLast((other) => other.#held !== undefined)
    zones.add(this)
    if (found === undefined) return
    this.#held = { ...found.#held!, isSound: false }
    this.serial = found.serial
    this.#confirmedMs = found.#confirmedMs
    const { image } = this.#held
    this.answerer = answererOf(image.reader(), nsInAuthority)
    this.shared = { version: nextVersion(), buffer: image.handle.buffer }
  }

  /** Includes the server block, since zones of other blocks may have the same name. */
  get #key(): string {
    const { primaries, place } = this.#options
    const addresses = primaries.map(({ host, port }) => `${host}:${port}`)
    return `${this.zoneText} ${place} ${addresses.join()}`
  }

  /** Address of the primary that is queried first. */
  get #host(): string {
    return this.#options.primaries[this.#first]!.host
  }

  get #expiryMs(): number {
    if (this.#held === undefined) return Number.POSITIVE_INFINITY
    const { refreshSeconds, retrySeconds, expireSeconds } = this.#held.timers
    // A zone that expires before two queries are due would alternate between served and not served.
    const seconds = Math.max(expireSeconds, refreshSeconds + retrySeconds, EXPIRE_SECONDS_MIN)
    return this.#confirmedMs + seconds * 1000
  }

  #expire(): void {
    const { log, onChange } = this.#options
    log.error(
      `zone ${this.zoneText} ${this.serial} expired: no primary answered in time`,
      'zone-expired',
    )
    this.#held = undefined
    this.answerer = undefined
    this.shared = undefined
    this.serial = -1
    this.changed = undefined
    onChange()
  }

  /** `host`: the primary that sent the NOTIFY. `serial`: the serial in it; -1 = none. */
  notify(host: string, serial: number): void {
    if (serial !== -1 && this.serial !== -1 && !isSerialAfter(serial, this.serial)) return
    const index = this.#options.primaries.findIndex(
      (primary) => addressOfHost(primary.host) === host,
    )
    if (index !== -1) this.#first = index
    this.#refresher.notify()
  }

  stop(): void {
    this.#refresher.stop()
    this.#instances?.item.zones.delete(this)
    this.#instances?.release()
  }

  #pauseMs(failures: number): number {
    const jitter = 1 - JITTER * this.#options.random()
    if (this.#held === undefined) {
      const doubled = FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10)
      return Math.min(doubled, FIRST_RETRY_MS_MAX) * jitter
    }
    if (this.#wantsAll && failures === 1) return GAP_MS
    const { refreshSeconds, retrySeconds } = this.#held.timers
    const seconds = failures === 0 ? refreshSeconds : retrySeconds
    return Math.max(TIMER_SECONDS_MIN, seconds) * 1000 * jitter
  }

  /** Queries the primaries, one after the other, until one answers. */
  async #refresh(): Promise<boolean> {
    const { serial } = this
    const version = this.shared?.version
    const isConfirmed = await this.#ask()
    if (this.serial !== serial || this.shared?.version !== version) this.#options.onChange()
    return isConfirmed
  }

  async #ask(): Promise<boolean> {
    const { primaries, onTransfer } = this.#options
    const faults: string[] = []
    for (let i = 0; i < primaries.length && !this.isStopped; i++) {
      const index = (this.#first + i) % primaries.length
      const primary = primaries[index]!
      const end = this.#options.spans?.()?.begin('transfer')
      const endSpan = (error: string): void => end?.(this.#attributes(primary), error)
      try {
        await this.#askOne(primary)
        endSpan('')
        this.#first = index
        this.#confirmedMs = this.#options.clock.monotonic()
        this.#lastFault = ''
        return true
      } catch (error) {
        if (!(error instanceof TransferFault) && !isFull(error)) throw error
        const text = error instanceof InputError ? error.print() : (error as Error).message
        endSpan(text)
        faults.push(`${primary.host}:${primary.port}: ${text}`)
      }
    }
    if (this.isStopped) return false
    onTransfer('failed')
    this.#logFault(faults.join('; '))
    return false
  }

  #attributes({ host, port }: HostPort): Record<string, string> {
    const zone = { 'sextant/zone': this.zoneText, 'sextant/primary': `${host}:${port}` }
    return this.serial === -1 ? zone : { ...zone, 'sextant/serial': `${this.serial}` }
  }

  #logFault(fault: string): void {
    if (fault === this.#lastFault) return
    this.#lastFault = fault
    this.#options.log.warning(this.#printFault(fault), 'zone-transfer-failed')
  }

  #printFault(fault: string): string {
    const keeps = this.serial === -1 ? 'no version to serve yet' : `still serving ${this.serial}`
    return /* warning */ `zone ${this.zoneText} cannot be transferred (${keeps}): ${fault}`
  }

  async #askOne(primary: HostPort): Promise<void> {
    const isKnown = this.#held !== undefined && !this.#wantsAll
    try {
      await this.#take(await this.#fetch(primary, isKnown), primary)
      this.#wantsAll = false
    } catch (error) {
      // After invalid data, the whole zone is requested next.
      const isInvalid = error instanceof TransferFault && error.rcode === -1
      if (isKnown && isInvalid) this.#wantsAll = true
      throw error
    }
  }

  #fetch(primary: HostPort, isKnown: boolean): Promise<Received> {
    const { zone, sourceFor, key, clock, timers } = this.#options
    const { signal } = this.#refresher
    const soa = isKnown ? this.#held?.soa : undefined
    const parts = { zone, primary, source: sourceFor(primary), key: key(), clock, timers, signal }
    return fetchZone({ ...parts, soa, serial: this.serial })
  }

  async #take(received: Received, primary: HostPort): Promise<void> {
    const { log, onTransfer } = this.#options
    if (this.isStopped) return
    const from = `from ${primary.host}:${primary.port}`
    const { serial } = received
    if (this.serial !== -1 && serial !== this.serial && !isSerialAfter(serial, this.serial)) {
      // The primary has an older version, so it can't confirm ours. A full transfer from it would
      // not help.
      throw new TransferFault(`the primary has an older version, ${serial}`, Rcode.NOERROR)
    }
    if (received.kind === 'current' || serial === this.serial) {
      onTransfer('none')
      return
    }
    if (received.kind === 'whole') await this.#replace(received)
    else await this.#advance(received)
    const kind = received.kind === 'whole' ? 'AXFR' : 'IXFR'
    onTransfer(kind)
    for (const warning of received.warnings) log.warning(warning.print(), 'zone-warning')
    log.info(
      `zone ${this.zoneText} transferred (${kind}) ${from}: serial ${serial}`,
      'zone-transferred',
      { zone: this.zoneText, serial },
    )
  }

  async #replace({ records, serial }: Received & { kind: 'whole' }): Promise<void> {
    const { clock, log } = this.#options
    const nowSeconds = Math.floor(clock.now() / 1000)
    const load = await loadWithoutPause({ log: records.finish(), nowSeconds }, clock)
    if (load.kind === 'failed') throw new TransferFault(load.errors[0]!.print())
    assert(load.kind === 'loaded', 'only a file can be unchanged or unreadable')
    if (this.isStopped) return
    const { signatures } = load
    const warnings = load.warnings.filter((warning) => warning !== signatures.warning)
    for (const warning of warnings.slice(0, 3)) log.warning(warning.print(), 'zone-warning')
    if (signatures.warning !== undefined)
      log.warning(signatures.warning.print(), 'zone-signatures-expire')
    const maxOctets = load.image.buffer.maxByteLength
    const image = new ZoneImage({ maxOctets }, adoptArena(load.image))
    this.changed = undefined
    this.signatures = signatures
    this.#putInForce(image, serial)
    image.onSwap(() => this.#share(image))
  }

  async #advance({ steps, soa, serial }: Received & { kind: 'steps' }): Promise<void> {
    const { zone, clock } = this.#options
    const held = this.#held!
    if (!held.isSound) throw new TransferFault('differences cannot be applied any more')
    const { image } = held
    const { buffer } = image.handle
    const version = { zone, serial: this.serial, buffer, imageVersion: image.version }
    const plan = new StepsPlan(VersionView.open(version)!)
    await runInSlices(plan.work(steps, soa), clock)
    if (this.isStopped) return
    try {
      await runInSlices(plan.write(image, image.findZone(zone)!), clock)
    } catch (error) {
      held.isSound = false
      throw error
    }
    if (this.isStopped || this.#held !== held) return
    image.publish()
    this.changed = plan.changed
    // A check of the whole zone may take longer than the transfer. The watch does it, at most once
    // a minute.
    this.signatures = undefined
    this.#putInForce(image, serial)
  }

  #putInForce(image: ZoneImage, serial: number): void {
    const { zone, nsInAuthority } = this.#options
    const { buffer } = image.handle
    const view = VersionView.open({ zone, serial, buffer, imageVersion: image.version })
    const record = view!.soa()!
    const { rdataOffset, rdataOctets, ttlSeconds } = record
    const rdata = record.rdata.slice(rdataOffset, rdataOffset + rdataOctets)
    const soa = { owner: zone, type: RRType.SOA, rrclass: RRClass.IN, ttlSeconds, rdata }
    const isSame = this.#held?.image === image
    this.#held = { image, soa, timers: soaTimers(rdata), isSound: true }
    this.serial = serial
    if (isSame) return
    this.answerer = answererOf(image.reader(), nsInAuthority)
    this.#share(image)
  }

  #share(image: ZoneImage): void {
    if (this.#held !== undefined && this.#held.image !== image) return
    this.shared = { version: nextVersion(), buffer: image.handle.buffer }
  }
}
