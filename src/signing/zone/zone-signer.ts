import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import type { Timers } from '../../base/timers.ts'
import { inceptionOf } from '../../dns/dnssec/rrsig.ts'
import { RRType } from '../../dns/iana/types.ts'
import { NAME_OCTETS_MAX, printName } from '../../dns/name/name.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { KeySource, SigningPolicy, ZoneKeys } from '../zone-keys.ts'
import { ownerKey } from './canonical-key.ts'
import { ClockGuard } from './clock-guard.ts'
import { PreparedSignatures } from './prepared-signatures.ts'
import type { ScanResult } from './refresh-scan.ts'
import { Refresher } from './refresher.ts'
import { type SignatureMaker, signInThread } from './sign-in-thread.ts'
import { SignatureLimit } from './signature-limit.ts'
import { SigningRound, type Touched } from './signing-round.ts'
import { ZoneView } from './zone-view.ts'

/** With the label of a hash before it, a name has 33 octets more. */
const NSEC3_APEX_OCTETS_MAX = NAME_OCTETS_MAX - 33

/** What a signer needs from its owner. */
interface SignerParts {
  readonly clock: Clock
  readonly timers: Timers
  /** Called for each RRset that the signer put or removed. */
  readonly onChanged?: (owner: Uint8Array, type: number) => void
  /** Makes many signatures. Default: in a thread. */
  readonly make?: SignatureMaker
  /** Signatures that the zone may have. Default: as memory allows. */
  readonly signaturesMax?: number
}

/** The state of a signed zone. */
interface SignerState {
  /** Signatures made and reused since the start. */
  readonly made: number
  readonly reused: number
  /** The first expiration of a signature in the image, in seconds since the Unix epoch; undefined = not known yet. */
  readonly expiresSeconds: number | undefined
}

/**
 * Signs a zone in its image. The caller changes the content of the image, notes what it changed, calls `sign`, and
 * publishes. The SOA is content: the caller raises the serial before it calls `sign`. RRsets of the
 * types `MADE_BY_SIGNERS` belong to the signer.
 */
export class ZoneSigner {
  readonly #image: ZoneImage
  readonly #zone: ZoneId
  readonly #apex: Uint8Array
  readonly #keys: KeySource
  readonly #policy: SigningPolicy
  readonly #parts: SignerParts
  readonly #guard: ClockGuard
  readonly #prepared = new PreparedSignatures()
  readonly #limit: SignatureLimit
  readonly #listeners = new Set<() => void>()
  readonly #unsubscribe: () => void
  readonly #refresher: Refresher
  #noted = new Set<string>()
  #isAllNoted = true
  #due = new Set<string>()
  /** Names whose signatures were made again since the last publication. */
  readonly #renewed = new Set<string>()
  /** The keys changed since the last signature. */
  #hasNewKeys = false
  #wasRefused = false
  /** Signing was refused, and is possible again. */
  #isRetry = false
  /** The last round failed half-way. */
  #isTorn = false
  /** The keys that made the last signatures. */
  #signedKeys: ZoneKeys | undefined
  /** `#signedKeys` made all signatures. */
  #isComplete = false
  #reportedKeys: ZoneKeys | undefined
  #ttlSecondsMax = 0
  #running: Promise<void> | undefined
  #made = 0
  #reused = 0
  #expiresSeconds: number | undefined

  /** `apex`: lower-case wire form. All content is noted at first. */
  constructor(
    image: ZoneImage,
    zone: ZoneId,
    apex: Uint8Array,
    signed: { readonly keys: KeySource; readonly policy: SigningPolicy },
    parts: SignerParts,
  ) {
    const { name, validitySeconds, jitterSeconds, refreshSeconds } = signed.policy
    if (validitySeconds - jitterSeconds <= refreshSeconds) {
      const message = `policy ${name}: signatures would be made again at once; lower \`refresh\` or raise \`validity\``
      throw new InputError(undefined, message)
    }
    this.#image = image
    this.#zone = zone
    this.#apex = apex
    this.#keys = signed.keys
    this.#policy = signed.policy
    this.#parts = parts
    this.#limit = new SignatureLimit(parts.signaturesMax)
    this.#guard = new ClockGuard(parts.clock)
    this.#refresher = new Refresher({
      clock: parts.clock,
      timers: parts.timers,
      policy: this.#policy,
      view: () => (this.#isSettled ? this.#published() : undefined),
      keys: () => this.#usableKeys(),
      prepare: (names, keys) => this.#prepare(names, keys),
      onDue: (names) => {
        this.#due = new Set(names)
        this.#notify()
      },
      onScanned: (result, usedKeys) => this.#onScanned(result, usedKeys),
    })
    this.#unsubscribe = this.#keys.subscribe((changed) => {
      if (Buffer.compare(changed, apex) === 0) this.#onNewKeys()
    })
  }

  /**
   * Notes that an RRset was put or removed, or a name declared, since the last `sign`. `owner`: lower-case wire form.
   */
  note(owner: Uint8Array, _type: number): void {
    if (!this.#isAllNoted) this.#noted.add(ownerKey(owner, this.#apex.length))
  }

  /** Notes that everything may have changed. */
  noteAll(): void {
    this.#isAllNoted = true
    this.#noted.clear()
  }

  /** Notes that the published version is signed, as that of a snapshot: only what is due is signed. */
  noteSigned(): void {
    this.#isAllNoted = false
    this.#noted.clear()
    const keys = this.#keys.find(this.#apex)
    // The snapshot may be of a time before a step of a roll.
    if (keys !== undefined && !hasSameOctets(this.#publishedKeys(), keys.dnskeys)) this.#onNewKeys()
  }

  /** Why nothing can be signed now, with what to do; '' = all can. */
  get refusal(): string {
    if (this.#keys.find(this.#apex) === undefined) {
      return `zone ${printName(this.#apex)} has no key that can sign; see the log for the reason`
    }
    if (this.#policy.denial === 'nsec3' && this.#apex.length > NSEC3_APEX_OCTETS_MAX) {
      return `the name of zone ${printName(this.#apex)} is too long for NSEC3; use \`denial nsec\``
    }
    return this.#guard.refusal(this.#newestInception())
  }

  get state(): SignerState {
    return { made: this.#made, reused: this.#reused, expiresSeconds: this.#expiresSeconds }
  }

  /** True if signatures must be made although no content changed: raise the serial, sign and publish. */
  get isDue(): boolean {
    return this.#hasNewKeys || this.#isRetry || this.#due.size > 0
  }

  /** Calls `listener` when `isDue` becomes true, until the returned function is called. */
  onDue(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Call it when what was signed is published. Reports the keys to their source if all signatures are of these: after a
   * change of keys, this takes many versions.
   */
  notePublished(): void {
    this.#renewed.clear()
    const keys = this.#signedKeys
    if (keys === undefined || keys === this.#reportedKeys || !this.#isComplete) return
    this.#reportedKeys = keys
    this.#keys.notePublished(this.#apex, keys, Math.max(this.#ttlSecondsMax, keys.dnskeyTtlSeconds))
  }

  /** Ends timers and subscriptions. */
  close(): void {
    this.#unsubscribe()
    this.#refresher.stop()
    this.#listeners.clear()
  }

  /**
   * Puts signatures, proofs of absence and key RRsets for the unpublished content. Few signatures are made at once:
   * returns undefined. Many are made in a thread: the result resolves when all are in the image. Meanwhile, content may
   * change and be noted. So call it until it returns undefined, and publish then. @throws InputError, or rejects with
   * it, if signing is refused or the image is full; then the content must not be published.
   */
  sign(): Promise<void> | undefined {
    if (this.#running !== undefined) return this.#running
    const work = this.#runRounds()
    if (work === undefined) return undefined
    this.#running = work.finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  #runRounds(): Promise<void> | undefined {
    while (this.#isAllNoted || this.#noted.size > 0 || this.isDue) {
      const work = this.#runRound()
      if (work !== undefined) return work.then(() => this.#runRounds())
    }
    return undefined
  }

  #runRound(): Promise<void> | undefined {
    const keys = this.#keys.find(this.#apex)
    const { refusal } = this
    if (refusal !== '' || keys === undefined) {
      this.#wasRefused = true
      throw new InputError(undefined, refusal)
    }
    if (this.#hasNewKeys) this.#noteKeys(keys)
    const names = this.#isAllNoted ? undefined : this.#noted
    for (const key of this.#due) this.#renewed.add(key)
    const round = this.#newRound(keys, { names, due: this.#due, renewed: this.#renewed })
    this.#noted = new Set()
    this.#isAllNoted = false
    this.#hasNewKeys = false
    this.#isRetry = false
    this.#due = new Set()
    try {
      const work = round.run()
      if (work === undefined) return this.#end(round, keys)
      return work.then(
        () => this.#end(round, keys),
        (error) => this.#fail(error),
      )
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Notes what must be signed at once after a change of keys: all, if a key is removed that has signatures. */
  #noteKeys({ dnskeys }: ZoneKeys): void {
    const before = this.#signedKeys
    const used =
      before !== undefined && this.#isComplete
        ? before.zoneSigners.map(({ dnskey }) => dnskey)
        : (before?.dnskeys ?? this.#publishedKeys())
    const isGone = used.some((one) => !dnskeys.some((dnskey) => equals(one, dnskey)))
    if (isGone) this.noteAll()
    else this.note(this.#apex, RRType.DNSKEY)
  }

  #newRound(keys: ZoneKeys, touched: Touched): SigningRound {
    const { clock, make = signInThread, onChanged = () => {} } = this.#parts
    const parts = {
      image: this.#image,
      zone: this.#zone,
      apex: this.#apex,
      keys,
      policy: this.#policy,
      old: this.#published(),
      prepared: this.#prepared,
      limit: this.#limit,
      isTorn: this.#isTorn,
      clock,
      make,
      onChanged,
    }
    return new SigningRound(parts, touched)
  }

  #end(round: SigningRound, keys: ZoneKeys): undefined {
    this.#isTorn = false
    this.#prepared.clear()
    this.#made += round.made
    this.#reused += round.reused
    if (round.isWhole) this.#isComplete = !round.hasRetained
    else if (!hasSameSigners(this.#signedKeys, keys)) this.#isComplete = false
    this.#signedKeys = keys
    this.#ttlSecondsMax = Math.max(this.#ttlSecondsMax, round.ttlSecondsMax)
    this.#refresher.resume()
    return undefined
  }

  #fail(error: unknown): never {
    this.noteAll()
    this.#isTorn = true
    this.#prepared.clear()
    this.#refresher.resume()
    throw error
  }

  #onNewKeys(): void {
    if (this.#keys.find(this.#apex) === undefined) return
    this.#hasNewKeys = true
    this.#refresher.restart()
    this.#notify()
  }

  /** Returns the keys if signatures can be made. Notifies the owner if they could not be made at its last call. */
  #usableKeys(): ZoneKeys | undefined {
    if (this.refusal !== '') return undefined
    if (this.#wasRefused) {
      this.#wasRefused = false
      this.#isRetry = true
      this.#notify()
    }
    return this.#keys.find(this.#apex)
  }

  #prepare(names: readonly string[], keys: ZoneKeys): Promise<void> {
    const view = this.#published()
    if (view === undefined) return Promise.resolve()
    return this.#newRound(keys, { names: new Set(), due: new Set(), renewed: new Set() }).prepare(
      names,
      view,
    )
  }

  #onScanned({ isCurrent, expiresSeconds }: ScanResult, keys: ZoneKeys): void {
    this.#expiresSeconds = expiresSeconds
    if (!isCurrent || keys !== this.#signedKeys) return
    this.#isComplete = true
    this.notePublished()
  }

  /** True if all that was signed is published. */
  get #isSettled(): boolean {
    return this.#running === undefined && this.#image.isPublished && !this.#isAllNoted
  }

  #published(): ZoneView | undefined {
    return ZoneView.open(this.#image.handle, this.#apex, this.#image.version)
  }

  /** The DNSKEY RRset that is served. */
  #publishedKeys(): readonly Uint8Array[] {
    const view = this.#published()
    return view?.set(view.find(this.#apex), RRType.DNSKEY)?.rdata ?? []
  }

  /** Every version signs the SOA again, so its signature is the newest. 0 = the zone is not signed yet. */
  #newestInception(): number {
    const view = this.#published()
    const rrsigs = view?.set(view.find(this.#apex), RRType.RRSIG)?.rdata ?? []
    return rrsigs.reduce((newest, rrsig) => Math.max(newest, inceptionOf(rrsig)), 0)
  }

  #notify(): void {
    for (const listener of this.#listeners) listener()
  }
}

/** True if the same keys sign the zone. */
function hasSameSigners(before: ZoneKeys | undefined, { zoneSigners }: ZoneKeys): boolean {
  const signers = before?.zoneSigners ?? []
  if (signers.length !== zoneSigners.length) return false
  return zoneSigners.every(({ dnskey }) => {
    return signers.some((key) => equals(key.dnskey, dnskey))
  })
}

/** True if both have the same octets, in any order. */
function hasSameOctets(a: readonly Uint8Array[], b: readonly Uint8Array[]): boolean {
  return a.length === b.length && a.every((one) => b.some((other) => equals(one, other)))
}

function equals(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}
