import { noteParent, notePublished } from '../../../src/signing/rolls/observe.ts'
import { plan, type UsableKey } from '../../../src/signing/rolls/plan.ts'
import { DEFAULT_POLICY, type RollPolicy } from '../../../src/signing/rolls/policy.ts'
import {
  printRollState,
  type RollKey,
  type RollRequest,
  type RollState,
  requestRoll,
  scanRollState,
} from '../../../src/signing/rolls/roll-state.ts'

/** What was served since when, and how long caches keep it. */
interface Served {
  readonly ids: readonly string[]
  readonly atSeconds: number
  readonly ttlSeconds: number
}

const START = 1_700_000_000
/** Half an hour. */
const STEP_SECONDS = 1800

/** The last version goes on if it is equal. */
function serve(versions: Served[], next: Served): void {
  const last = versions.at(-1)!
  const isSame = last.ids.join() === next.ids.join() && last.ttlSeconds === next.ttlSeconds
  if (!isSame) versions.push(next)
}

/**
 * A zone, its parent, and all caches of the Internet. Time is in seconds. Each version that any server may still serve,
 * or any cache may still have, counts.
 */
export class RollWorld {
  policy: RollPolicy
  seconds = START
  /** The clock of the server is behind by this time. */
  lateSeconds = 0
  zoneTtlSeconds = 3600
  readonly store: UsableKey[] = []
  readonly removed: string[] = []
  readonly steps: string[] = []
  #state: RollState | undefined
  readonly #kinds = new Map<string, Pick<RollKey, 'role' | 'algorithm'>>()
  readonly #dnskeys: Served[] = []
  readonly #signers: Served[] = []
  readonly #parent: Served[] = [{ ids: [], atSeconds: 0, ttlSeconds: 3600 }]
  readonly #cds: Served[] = [{ ids: [], atSeconds: 0, ttlSeconds: 0 }]
  #created = 0

  constructor(policy: Partial<RollPolicy> = {}) {
    this.policy = { ...DEFAULT_POLICY, ...policy }
  }

  get state(): RollState {
    return this.#state!
  }

  /** Stores the state as text, as the server does. */
  set state(state: RollState) {
    if (state !== this.#state) this.#state = scanRollState(printRollState(state))
  }

  get nowSeconds(): number {
    return this.seconds - this.lateSeconds
  }

  get parentKeys(): readonly string[] {
    return this.#parent.at(-1)!.ids
  }

  request(request: RollRequest): void {
    this.#state = scanRollState(requestRoll(printRollState(this.state), request))
  }

  addKey(algorithm: number, flags: number): string {
    const id = `Kexample.org.+${String(algorithm).padStart(3, '0')}+${String(++this.#created).padStart(5, '0')}`
    this.store.push({ id, algorithm, flags })
    return id
  }

  /** Plans as a server that was started just now, and does what the plan says. */
  plan(): void {
    for (let round = 0; round < 10; round++) {
      const { nowSeconds, policy } = this
      const made = plan({ state: this.#state, usable: this.store, policy, nowSeconds })
      this.steps.push(...made.steps)
      for (const { id, role, algorithm } of made.state.keys)
        this.#kinds.set(id, { role, algorithm })
      this.state = made.state
      for (const id of made.retire) {
        this.removed.push(id)
        this.store.splice(
          this.store.findIndex((key) => key.id === id),
          1,
        )
      }
      for (const { role, algorithm } of made.create)
        this.addKey(algorithm, role === 'zsk' ? 256 : 257)
      if (made.retire.length + made.create.length === 0) return
    }
    throw new Error('the plan does not end')
  }

  /** Serves a version that the current keys signed. */
  publish(): void {
    const { dnskey, signers, ds } = this.state
    const atSeconds = this.seconds
    const dnskeySeconds = this.policy.dnskeyTtlSeconds
    if (this.#dnskeys.length === 0) {
      // The unsigned zone. The server does not know its TTLs: those of the first signed version count.
      const unsigned = { ids: [], atSeconds: 0, ttlSeconds: this.zoneTtlSeconds }
      this.#dnskeys.push(unsigned)
      this.#signers.push(unsigned)
    }
    serve(this.#dnskeys, { ids: dnskey.keys, atSeconds, ttlSeconds: dnskeySeconds })
    serve(this.#signers, { ids: signers.keys, atSeconds, ttlSeconds: this.zoneTtlSeconds })
    serve(this.#cds, { ids: ds.keys, atSeconds, ttlSeconds: 0 })
    const ttls = { dnskeySeconds, zoneSeconds: this.zoneTtlSeconds }
    this.state = notePublished(this.state, ttls, this.policy, this.nowSeconds)
  }

  /**
   * The parent does what the CDS of one of the servers ask for. `server`: which one; 0 = the first, which is never
   * late.
   */
  followCds(server = 0): void {
    const served = this.#cached(this.#cds, this.policy.zonePropagationSeconds)
    this.setParent(served.at(-1 - (server % served.length))!)
  }

  setParent(ids: readonly string[]): void {
    const ttlSeconds = this.policy.parentDsTtlSeconds
    serve(this.#parent, { ids, atSeconds: this.seconds, ttlSeconds })
  }

  poll(): void {
    const ttlSeconds = this.policy.parentDsTtlSeconds
    const seen = { keys: this.parentKeys, ttlSeconds, atSeconds: this.nowSeconds }
    this.state = noteParent(this.state, seen, this.policy, this.nowSeconds)
  }

  /** The combinations of cached sets that do not validate, as text. */
  bogus(): readonly string[] {
    const { zonePropagationSeconds, parentPropagationSeconds } = this.policy
    const dnskeys = this.#cached(this.#dnskeys, zonePropagationSeconds)
    const signers = this.#cached(this.#signers, zonePropagationSeconds)
    const found: string[] = []
    for (const ds of this.#cached(this.#parent, parentPropagationSeconds)) {
      for (const keys of dnskeys) {
        for (const signing of signers) {
          const fault = this.#validate(ds, keys, signing)
          if (fault !== '') found.push(`${fault}: DS ${ds}, DNSKEY ${keys}, signed by ${signing}`)
        }
      }
    }
    return found
  }

  #cached(served: readonly Served[], delaySeconds: number): readonly (readonly string[])[] {
    const live = served.filter((_, i) => {
      const next = served[i + 1]
      return (
        next === undefined || this.seconds <= next.atSeconds + delaySeconds + served[i]!.ttlSeconds
      )
    })
    // The last one of equal versions counts.
    const last = live.filter(({ ids }, i) => {
      return !live.slice(i + 1).some((other) => other.ids.join() === ids.join())
    })
    return last.map(({ ids }) => ids)
  }

  /** As a validator that wants a signature of each algorithm. '' = secure or insecure. */
  #validate(ds: readonly string[], dnskeys: readonly string[], signers: readonly string[]): string {
    if (ds.length === 0) return ''
    for (const algorithm of this.#algorithms(ds)) {
      const isSigned = dnskeys.some((id) => {
        const { role, algorithm: found } = this.#kinds.get(id)!
        return found === algorithm && role !== 'zsk' && ds.includes(id)
      })
      if (!isSigned) return `no chain from a DS of algorithm ${algorithm}`
    }
    for (const algorithm of this.#algorithms(dnskeys)) {
      const isSigned = signers.some((id) => {
        const { role, algorithm: found } = this.#kinds.get(id)!
        return found === algorithm && role !== 'ksk' && dnskeys.includes(id)
      })
      if (!isSigned) return `no signature of algorithm ${algorithm}`
    }
    return ''
  }

  #algorithms(ids: readonly string[]): ReadonlySet<number> {
    return new Set(ids.map((id) => this.#kinds.get(id)!.algorithm))
  }
}

/**
 * Lets time pass with a server that publishes at once and a parent that follows CDS at once. Returns steps with their
 * hour.
 */
export function timelineOf(world: RollWorld, hours: number): readonly string[] {
  const start = world.seconds
  const lines: string[] = []
  const note = (): void => {
    const hour = (world.seconds - start) / 3600
    lines.push(...world.steps.splice(0).map((step) => `${hour} ${step}`))
  }
  for (; world.seconds < start + hours * 3600; world.seconds += STEP_SECONDS) {
    world.plan()
    world.publish()
    world.followCds()
    world.poll()
    note()
    const bogus = world.bogus()
    if (bogus.length > 0) throw new Error(`${bogus[0]}\n${lines.join('\n')}`)
  }
  return lines
}
