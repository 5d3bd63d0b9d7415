import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { runInSlices, runWhole, Slices } from '../../base/slices.ts'
import { Algorithm } from '../../dns/dnssec/algorithms.ts'
import { signSet } from '../../dns/dnssec/rrsig.ts'
import { RRType } from '../../dns/iana/types.ts'
import { printName } from '../../dns/name/name.ts'
import { encodeDirectory } from '../../zone/image/signature-directory.ts'
import type { ZoneId } from '../../zone/image/types.ts'
import type { ZoneImage } from '../../zone/image/writer.ts'
import type { SigningPolicy, ZoneKeys } from '../zone-keys.ts'
import { apexSets, negativeTtl } from './apex-sets.ts'
import { keyOwner } from './canonical-key.ts'
import type { DenialPlan } from './denial-plan.ts'
import { type MissingSignature, type NamePlan, planName } from './name-plan.ts'
import { isLeftover } from './name-types.ts'
import type { OwnerChain } from './owner-chain.ts'
import type { PreparedSignatures } from './prepared-signatures.ts'
import type { SetData } from './set-answers.ts'
import type { SignatureMaker } from './sign-in-thread.ts'
import type { SignatureLimit } from './signature-limit.ts'
import { SignatureSource } from './signature-source.ts'
import { addHiddenNames } from './touched-names.ts'
import { planAll, planTouched } from './zone-plan.ts'
import { ZoneView } from './zone-view.ts'

/** So many names with so many answers, and signatures of ECDSA P-256, are signed at once, in some milliseconds. */
const FEW_NAMES = 512
const FEW_ANSWERS = 2048
const FEW_SIGNATURES = 64
/** With more, a plan of the whole zone takes less time. */
const TOUCHED_MAX = 1024
/** Names that one message to the thread has at most. */
const CHUNK_NAMES = 128
/** Signatures that one message to the thread has when they are made before they are needed, or some more. */
const CHUNK_SIGNATURES = 512
/** Messages on their way: the thread always has work. */
const CHUNKS_AT_ONCE = 2

/** Records of an RRset in an image. */
const RDATA_MAX = 0xffff

/** Time of a signature, in that of ECDSA P-256. */
const WEIGHTS: ReadonlyMap<number, number> = new Map([
  [Algorithm.RsaSha256, 16],
  [Algorithm.RsaSha512, 16],
  [Algorithm.EcdsaP384, 8],
])

/** The type of the proofs of absence. */
const PROOF_TYPES = { nsec: RRType.NSEC, nsec3: RRType.NSEC3, compact: 0 } as const

/** A zone in an image, and how it is signed. */
interface RoundParts {
  readonly image: ZoneImage
  readonly zone: ZoneId
  /** Lower-case wire form. */
  readonly apex: Uint8Array
  readonly keys: ZoneKeys
  readonly policy: SigningPolicy
  /** Signatures that are valid and fit are reused from it. Undefined = it does not exist. */
  readonly old: ZoneView | undefined
  readonly prepared: PreparedSignatures
  /** A round that goes over all names counts again. */
  readonly limit: SignatureLimit
  /** A round before failed half-way: any proof of absence may differ from the chain. */
  readonly isTorn: boolean
  readonly clock: Clock
  readonly make: SignatureMaker
  /** Called for each RRset that was put or removed. */
  readonly onChanged: (owner: Uint8Array, type: number) => void
}

/** What to sign. */
export interface Touched {
  /** Keys of the names that changed; undefined = any may have. */
  readonly names: ReadonlySet<string> | undefined
  /** Keys of names that have signatures to make again. */
  readonly due: ReadonlySet<string>
  /** These, and those of earlier rounds since the last publication, which has the old signatures. */
  readonly renewed: ReadonlySet<string>
}

/** Signs the unpublished content of a zone once. */
export class SigningRound {
  readonly #parts: RoundParts
  readonly #source: SignatureSource
  readonly #due: ReadonlySet<string>
  readonly #renewed: ReadonlySet<string>
  readonly #names: ReadonlySet<string> | undefined
  /** The owners of the zone's proofs before the round; undefined = it gets no proofs. */
  #chain: OwnerChain | undefined
  /** Those that joined the chain or left it. */
  readonly #moved: Uint8Array[] = []
  /** Signatures made. */
  made = 0
  ttlSecondsMax = 0
  /** Signed RRsets of the names of this round. */
  sets = 0

  constructor(parts: RoundParts, { names, due, renewed }: Touched) {
    this.#parts = parts
    this.#names = names
    this.#due = due
    this.#renewed = renewed
    this.#source = new SignatureSource({
      keys: parts.keys,
      policy: parts.policy,
      nowSeconds: Math.floor(parts.clock.now() / 1000),
      buffer: parts.image.handle.buffer,
      old: parts.old,
    })
  }

  /** Signatures reused. */
  get reused(): number {
    return this.#source.reused
  }

  /** True if signatures of keys that no longer sign were reused. */
  get hasRetained(): boolean {
    return this.#source.hasRetained
  }

  /** Makes the signatures of published names that must be made again, before `run` needs them. */
  async prepare(names: readonly string[], view: ZoneView): Promise<void> {
    const { apex, clock, make, policy, prepared } = this.#parts
    const type = PROOF_TYPES[policy.denial]
    const denialOf = (_: ZoneView, key: string): SetData | undefined => {
      return view.set(view.find(keyOwner(key, apex)), type)
    }
    this.#source.isStrict = true
    const slices = new Slices(clock)
    let missing: { readonly key: string; readonly one: MissingSignature }[] = []
    for (const [i, key] of names.entries()) {
      const plan = planName(view, { type, keys: names, denialOf }, key, this.#source)
      for (const one of plan.missing) missing.push({ key, one })
      if (slices.isOver) await slices.pause()
      if (missing.length < CHUNK_SIGNATURES && i + 1 < names.length) continue
      const made = await make(
        apex,
        missing.map(({ one }) => one),
      )
      for (const [k, { key, one }] of missing.entries()) prepared.add(key, one, made[k]!)
      missing = []
    }
  }

  /** True if the round goes over all names. */
  isWhole = false

  /** Signs. Few signatures are made at once; of many, the result resolves when they are in the image. */
  run(): Promise<void> | undefined {
    const { policy } = this.#parts
    const isApexChanged = this.#putApexSets()
    const view = this.#view()
    const ttlSeconds = this.#negativeTtl(view)
    if (policy.denial !== 'compact') this.#chain = view.chain(PROOF_TYPES[policy.denial])
    const touched = this.#touched(view, isApexChanged, ttlSeconds)
    if (touched === undefined) return this.#runWhole(view, ttlSeconds)
    for (const key of touched) this.#clear(view, keyOwner(key, view.apex))
    return this.#process(planTouched(this.#view(), touched, policy, ttlSeconds))
  }

  #view(): ZoneView {
    const { image, apex } = this.#parts
    const view = ZoneView.open(image.handle, apex, image.version + 1)
    if (view === undefined) throw new InputError(undefined, `no zone ${printName(apex)}`)
    return view
  }

  #putApexSets(): boolean {
    const { apex, keys, policy } = this.#parts
    let isChanged = false
    for (const [type, set] of apexSets(keys, policy)) {
      if (this.#put(apex, type, set)) isChanged = true
    }
    return isChanged
  }

  /** Puts or removes an RRset; returns false if nothing changes. */
  #put(owner: Uint8Array, type: number, set: SetData | undefined): boolean {
    const { image, zone, onChanged } = this.#parts
    const isChanged =
      set === undefined ? image.removeRRset(zone, owner, type) : image.putRRset(zone, owner, set)
    if (isChanged) onChanged(owner, type)
    return isChanged
  }

  #negativeTtl(view: ZoneView): number {
    const ttlSeconds = negativeTtl(view)
    if (ttlSeconds !== undefined) return ttlSeconds
    throw new InputError(undefined, `zone ${printName(view.apex)} has no SOA`)
  }

  /** Returns the names to sign; undefined = all. */
  #touched(view: ZoneView, isApexChanged: boolean, ttlSeconds: number): Set<string> | undefined {
    if (this.#names === undefined || !this.#hasProofs(view, ttlSeconds)) return undefined
    const touched = new Set([...this.#names, ...this.#due])
    if (isApexChanged) touched.add('')
    addHiddenNames(view, this.#parts.old, touched)
    return touched.size > TOUCHED_MAX ? undefined : touched
  }

  /** True if the zone has proofs of absence of the right kind, with this TTL. */
  #hasProofs(view: ZoneView, ttlSeconds: number): boolean {
    const { denial } = this.#parts.policy
    const nsec = view.chain(RRType.NSEC)
    const nsec3 = view.chain(RRType.NSEC3)
    if (denial === 'compact') return nsec.isEmpty && nsec3.isEmpty
    const [chain, type] = denial === 'nsec' ? [nsec, RRType.NSEC] : [nsec3, RRType.NSEC3]
    const first = chain.first()
    if (first === undefined) return false
    return view.set(view.find(keyOwner(first, view.apex)), type)?.ttlSeconds === ttlSeconds
  }

  #runWhole(view: ZoneView, ttlSeconds: number): Promise<void> | undefined {
    const { clock } = this.#parts
    this.isWhole = true
    this.#parts.limit.reset()
    const work = this.#planWhole(view, ttlSeconds)
    if (!hasMoreNodes(view, FEW_NAMES)) return this.#process(runWhole(work))
    return (async () => {
      await this.#processInChunks(await runInSlices(work, clock), [])
    })()
  }

  *#planWhole(view: ZoneView, ttlSeconds: number): Generator<void, DenialPlan> {
    let count = 0
    for (const node of view.nodes()) {
      if (view.bodyOf(node) !== 0) this.#clearUnplanned(view, view.keyOf(node))
      if (++count % FEW_NAMES === 0) yield
    }
    return yield* planAll(this.#view(), this.#parts.policy, ttlSeconds)
  }

  /** Clears a name that the plan, which is made later, will not have. */
  #clearUnplanned(view: ZoneView, key: string): void {
    const owner = keyOwner(key, view.apex)
    if (this.#clear(view, owner) && this.#wasInChain(key)) this.#moved.push(owner)
  }

  /**
   * Removes a name that its source has removed, so that the name above does not seem to have names below it. Returns
   * false if the source has it.
   */
  #clear(view: ZoneView, owner: Uint8Array): boolean {
    const body = view.find(owner)
    if (!isLeftover(view, body)) return false
    this.#count(owner, 0)
    for (const { type } of view.sets(body)) this.#put(owner, type, undefined)
    return true
  }

  #process(plan: DenialPlan): Promise<void> | undefined {
    const { names, areAll } = this.#planFew(plan)
    if (!areAll) return this.#processInChunks(plan, names)
    for (const name of names) {
      const made = name.missing.map(({ set, key, times }) =>
        signSet(set, key, this.#parts.apex, times),
      )
      this.#putName(plan.type, name, made)
    }
    runWhole(this.#updateChain())
    return undefined
  }

  /** `first`: the first names, which are planned already. */
  async #processInChunks(plan: DenialPlan, first: readonly NamePlan[]): Promise<void> {
    const { apex, clock, make } = this.#parts
    const slices = new Slices(clock)
    const inWork: Promise<void>[] = []
    try {
      for (let from = 0; from < plan.keys.length; ) {
        const names = from < first.length ? first : this.#planChunk(plan, from, slices)
        from += names.length
        const missing = names.flatMap((name) => name.missing)
        const signatures = missing.length === 0 ? Promise.resolve([]) : make(apex, missing)
        const work = signatures.then((made) => this.#putNames(plan.type, names, made))
        // It may reject before anything waits for it.
        work.catch(() => {})
        inWork.push(work)
        if (inWork.length >= CHUNKS_AT_ONCE) await inWork.shift()
        if (slices.isOver) await slices.pause()
      }
    } finally {
      // After a failure, the others must not put anything later.
      await Promise.allSettled(inWork)
    }
    await Promise.all(inWork)
    await runInSlices(this.#updateChain(), clock)
  }

  /** Returns the plans of all names, or of the first ones if all are too much for one step. */
  #planFew(plan: DenialPlan): { names: readonly NamePlan[]; areAll: boolean } {
    const names: NamePlan[] = []
    if (plan.keys.length > FEW_NAMES) return { names, areAll: false }
    const view = this.#view()
    let answers = 0
    let weight = 0
    for (const key of plan.keys) {
      const name = this.#plan(view, plan, key)
      names.push(name)
      for (const type of name.types) answers += type.answers.length
      weight += weightOf(name.missing)
      if (answers > FEW_ANSWERS || weight > FEW_SIGNATURES) return { names, areAll: false }
    }
    return { names, areAll: true }
  }

  /** Returns the plans of names from index `from` on: at least one, and as many as the slice has time for. */
  #planChunk(plan: DenialPlan, from: number, slices: Slices): NamePlan[] {
    const view = this.#view()
    const names: NamePlan[] = []
    for (const key of plan.keys.slice(from, from + CHUNK_NAMES)) {
      names.push(this.#plan(view, plan, key))
      if (slices.isOver) break
    }
    return names
  }

  #plan(view: ZoneView, plan: DenialPlan, key: string): NamePlan {
    this.#source.isStrict = this.#renewed.has(key)
    return this.#parts.prepared.complete(planName(view, plan, key, this.#source))
  }

  #putNames(type: number, names: readonly NamePlan[], made: readonly Uint8Array[]): void {
    let from = 0
    for (const name of names) {
      this.#putName(type, name, made.slice(from, from + name.missing.length))
      from += name.missing.length
    }
  }

  /** `made`: the missing signatures. `type`: that of the proofs of absence. */
  #putName(type: number, name: NamePlan, made: readonly Uint8Array[]): void {
    const { owner, denial, missing, signatures, types } = name
    for (const [i, { index }] of missing.entries()) signatures[index] = made[i]
    for (const one of [RRType.NSEC, RRType.NSEC3]) {
      this.#put(owner, one, one === type ? denial : undefined)
    }
    if (this.#wasInChain(name.key) !== (denial !== undefined)) this.#moved.push(owner)
    const rrsigs = signatures.filter((one) => one !== undefined)
    if (rrsigs.length > RDATA_MAX) {
      const message = `${printName(owner)} needs ${rrsigs.length} signatures; ${RDATA_MAX} are possible`
      throw new InputError(undefined, `${message}: use fewer endpoints, or other \`answers\``)
    }
    this.#count(owner, rrsigs.length)
    this.#put(
      owner,
      RRType.RRSIG,
      rrsigs.length === 0
        ? undefined
        : {
            type: RRType.RRSIG,
            ttlSeconds: name.ttlSeconds,
            rdata: rrsigs,
            steering: encodeDirectory(types),
          },
    )
    this.made += made.length
    this.sets += types.length
    this.ttlSecondsMax = Math.max(this.ttlSecondsMax, name.ttlSecondsMax)
  }

  /** Counts the signatures that a name gets, before it gets them. */
  #count(owner: Uint8Array, signatures: number): void {
    const view = this.isWhole ? undefined : this.#view()
    const before = view?.recordCount(view.find(owner), RRType.RRSIG) ?? 0
    this.#parts.limit.count(owner, before, signatures)
  }

  #updateChain(): Generator<void, void> {
    const { image, zone, isTorn } = this.#parts
    // Without a chain of this kind, the image looks for all owners.
    const isUsable = !isTorn && this.#chain?.isEmpty === false
    return image.updateChain(zone, isUsable ? this.#moved : undefined)
  }

  #wasInChain(key: string): boolean {
    return this.#chain?.seek(key) === true
  }
}

function weightOf(missing: readonly MissingSignature[]): number {
  return missing.reduce((sum, { key }) => sum + (WEIGHTS.get(key.algorithm) ?? 1), 0)
}

function hasMoreNodes(view: ZoneView, limit: number): boolean {
  let count = 0
  for (const _ of view.nodes()) if (++count > limit) return true
  return false
}
