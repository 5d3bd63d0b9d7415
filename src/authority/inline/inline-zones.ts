import type { ResourceLease } from '../../base/resource-registry.ts'
import { guarding } from '../../base/telemetry/guard.ts'
import type { ProblemGroup, ProblemText } from '../../base/telemetry/problems.ts'
import type { SigningReport } from '../../base/telemetry/status.ts'
import { placeOf } from '../../plugin/block-place.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { SignedZone } from '../../signing/registry.ts'
import { measureSigning } from '../../signing/signing-report.ts'
import { ZoneSigner } from '../../signing/zone/zone-signer.ts'
import type { SigningPolicy } from '../../signing/zone-keys.ts'
import { imageVersionOf, ZoneReader } from '../../zone/image/reader.ts'
import type { ZoneAnswerer } from '../../zone/lookup/answer.ts'
import type { OwnedZone } from '../owned-zone.ts'
import { answererOf, type VersionMemory } from '../version-memory.ts'
import { InlineSigner, type SignedVersion } from './inline-signer.ts'
import { copyVersion, SignedSnapshot } from './signed-snapshot.ts'

/** How long a start waits for zones that are signed for the first time. */
const SETTLE_MS_MAX = 5000
/** How often a zone without changes is checked whether it can be signed. */
const CHECK_MS = 60_000

interface InlineZonesParts {
  readonly c: SetupContext
  /** The directive that has the zones. */
  readonly directive: string
  readonly nsInAuthority: boolean
  /** Undefined = the zone is not signed. */
  readonly signingOf: (zone: Uint8Array) => SignedZone | undefined
  /** Serves these zones instead of those before. */
  readonly publish: (zones: readonly OwnedZone[]) => void
}

/** The signers of one zone, in the order of their starts: during a reload, an old and a new one. */
class ZoneSigners {
  readonly signers = new Set<InlineSigner>()
}

/** A signed zone, and where its content comes from. */
class InlineZone implements OwnedZone {
  readonly signer: InlineSigner
  readonly kept: SignedSnapshot | undefined
  readonly policy: SigningPolicy
  source: OwnedZone
  /** Of the source, when its last version was handed to the signer. */
  buffer: SharedArrayBuffer | undefined
  imageVersion = 0
  answerer: ZoneAnswerer | undefined
  readonly lease: ResourceLease<ZoneSigners>
  #answering: VersionMemory | undefined

  constructor(
    source: OwnedZone,
    signer: InlineSigner,
    lease: ResourceLease<ZoneSigners>,
    { kept, policy }: Pick<InlineZone, 'kept' | 'policy'>,
  ) {
    this.policy = policy
    this.source = source
    this.signer = signer
    this.lease = lease
    this.kept = kept
  }

  get zone(): Uint8Array {
    return this.source.zone
  }

  get zoneText(): string {
    return this.source.zoneText
  }

  get path(): string {
    return this.source.path ?? ''
  }

  get isElsewhere(): boolean {
    return this.source.isElsewhere === true
  }

  get shared(): VersionMemory | undefined {
    return this.signer.shared
  }

  get serial(): number {
    return this.signer.serial
  }

  get changed(): OwnedZone['changed'] {
    return this.signer.changed
  }

  /** The signer takes care of them. */
  readonly signatures = { warning: undefined, expiry: undefined }

  /** Answers from the version of the signer from now on. */
  answer(nsInAuthority: boolean): void {
    const { shared } = this.signer
    if (shared === this.#answering) return
    this.#answering = shared
    this.answerer = shared && answererOf(new ZoneReader(shared), nsInAuthority)
  }
}

/** Signs the zones of one directive before they are published, on the control thread. */
export class InlineZones {
  readonly #parts: InlineZonesParts
  /** By text of the zone. */
  readonly #zones = new Map<string, InlineZone>()
  #sources: readonly OwnedZone[] = []
  #working: Promise<unknown> = Promise.resolve()
  readonly #stops: readonly (() => void)[]

  constructor(parts: InlineZonesParts) {
    this.#parts = parts
    this.#stops = [
      measureSigning(parts.c.metrics, () => this.reports),
      parts.c.timers.every(CHECK_MS, () => {
        for (const { signer } of this.#zones.values()) signer.check()
      }),
    ]
  }

  /** Publishes zones; those that `dnssec` signs, once they are signed. */
  publish(sources: readonly OwnedZone[]): void {
    this.#sources = sources
    const texts = new Set(sources.map(({ zoneText }) => zoneText))
    for (const [text, zone] of this.#zones) {
      if (texts.has(text)) continue
      this.#zones.delete(text)
      void this.#stopOne(zone)
    }
    const taken = sources.flatMap((source) => this.#take(source) ?? [])
    this.#working = Promise.all([this.#working, ...taken])
    this.#publish()
  }

  /** Resolves once all zones are signed, or after a time: large zones take minutes. */
  async settled(): Promise<void> {
    await this.#working
    const finished = Promise.all([...this.#zones.values()].map(({ signer }) => signer.finished()))
    let cancel = (): void => {}
    const limit = new Promise<void>((resolve) => {
      cancel = this.#parts.c.timers.after(SETTLE_MS_MAX, resolve)
    })
    await Promise.race([finished, limit])
    cancel()
  }

  /** How the zones are signed. */
  get reports(): readonly SigningReport[] {
    return [...this.#zones.values()].map(({ zoneText, signer, policy }) => {
      const { made = 0, reused = 0, expiresSeconds } = signer.state ?? {}
      const expires = expiresSeconds === undefined ? null : new Date(expiresSeconds * 1000)
      return {
        ...{ zone: zoneText, policy: policy.name, denial: policy.denial, made, reused },
        expires: expires?.toISOString() ?? null,
        fault: signer.fault,
      }
    })
  }

  /** Zones that cannot be signed now. */
  get problems(): readonly ProblemGroup[] {
    const zones = [...this.#zones.values()]
    const problems = zones.flatMap(({ zoneText, signer }): ProblemText[] => {
      if (signer.fault === '') return []
      return [{ place: '', object: `zone ${zoneText}`, reason: signer.problem }]
    })
    const of = `${this.#parts.directive} ${placeOf(this.#parts.c.block)} dnssec`
    const unsigned = { kind: 'signature' as const, of, count: problems.length, problems }
    return [unsigned, ...zones.flatMap(({ kept }) => kept?.problems ?? [])]
  }

  async stop(): Promise<void> {
    for (const stop of this.#stops) stop()
    const zones = [...this.#zones.values()]
    this.#zones.clear()
    await Promise.all(zones.map((zone) => this.#stopOne(zone)))
  }

  async #stopOne(zone: InlineZone): Promise<void> {
    zone.signer.stop()
    zone.lease.item.signers.delete(zone.signer)
    zone.lease.release()
    await zone.kept?.close()
  }

  /** Hands a version of a source to its signer, if it has another one; returns when it is signed. */
  #take(source: OwnedZone): Promise<void> | undefined {
    const signed = this.#parts.signingOf(source.zone)
    if (signed === undefined) return undefined
    const zone = this.#zones.get(source.zoneText) ?? this.#open(source, signed)
    zone.source = source
    const buffer = source.shared?.buffer
    const imageVersion = buffer === undefined ? 0 : imageVersionOf(buffer)
    if (buffer === zone.buffer && imageVersion === zone.imageVersion) return undefined
    zone.buffer = buffer
    zone.imageVersion = imageVersion
    if (buffer === undefined) {
      zone.signer.drop()
      return undefined
    }
    const guarded = guarding(this.#parts.c.log, `Signing zone ${source.zoneText}`)
    const { serial, changed } = source
    return guarded(() => zone.signer.take({ buffer, imageVersion, serial }, changed))
  }

  #open(source: OwnedZone, signed: SignedZone): InlineZone {
    const { c, directive } = this.#parts
    const { clock, timers, log } = c
    const { zone, zoneText } = source
    const key = `${directive} ${placeOf(c.block)} ${zoneText}`
    const lease = c.resources.acquire(ZoneSigners, key, () => new ZoneSigners())
    const path = source.snapshot?.path
    const snapshot =
      path === undefined
        ? undefined
        : new SignedSnapshot({ path: `${path}.signed`, zone, clock, timers, log })
    const others = lease.item.signers
    const signer: InlineSigner = new InlineSigner({
      ...{ zone, clock, timers, log },
      createSigner: (image, id, onChanged) =>
        new ZoneSigner(image, id, zone, signed, { clock, timers, onChanged }),
      resume: () => this.#resume(others, signer, snapshot),
      onPublish: () => {
        snapshot?.noteVersion(signer)
        this.#publish()
      },
    })
    others.add(signer)
    const opened = new InlineZone(source, signer, lease, {
      kept: snapshot,
      policy: signed.policy,
    })
    this.#zones.set(zoneText, opened)
    return opened
  }

  /** Returns what a running instance serves, or an earlier process served. */
  async #resume(
    signers: ReadonlySet<InlineSigner>,
    own: InlineSigner,
    snapshot: SignedSnapshot | undefined,
  ): Promise<SignedVersion | undefined> {
    const other = [...signers].findLast((one) => one !== own && one.captured !== undefined)
    if (other !== undefined) return copyVersion(other.captured!, other, this.#parts.c.clock)
    return snapshot?.load()
  }

  #publish(): void {
    const { nsInAuthority, publish } = this.#parts
    const zones = this.#sources.map((source) => this.#zones.get(source.zoneText) ?? source)
    for (const zone of zones) if (zone instanceof InlineZone) zone.answer(nsInAuthority)
    publish(zones)
  }
}
