import { printAlgorithm } from '../../dns/dnssec/algorithms.ts'
import { FLAGS_ZSK } from '../../dns/dnssec/dnskey.ts'
import { keyName } from './key-text.ts'
import { move } from './moves.ts'
import { isAsked, noteParent } from './observe.ts'
import type { KeyRole, RollPolicy } from './policy.ts'
import type { KeyLayout, RollKey, RollRequest, RollState } from './roll-state.ts'
import { printRequest, TIMELINES } from './roll-state.ts'
import {
  alsoSeen,
  equalIds,
  expire,
  mapTimelines,
  moveTo,
  phaseOf,
  restartWaits,
  settled,
} from './timeline.ts'

/** A key of the zone in the key store, with its private key. */
export interface UsableKey {
  readonly id: string
  readonly flags: number
  readonly algorithm: number
}

export interface PlanInput {
  /** Undefined = the zone was never signed with keys of this store. */
  readonly state: RollState | undefined
  readonly usable: readonly UsableKey[]
  readonly policy: RollPolicy
  readonly nowSeconds: number
}

/** A key to make. */
export interface NewKey {
  readonly role: KeyRole
  readonly algorithm: number
}

export interface RollPlan {
  readonly state: RollState
  /** What was done, in words; empty = nothing. */
  readonly steps: readonly string[]
  /** Keys to make; plan again when they are stored. */
  readonly create: readonly NewKey[]
  /** Keys that are nowhere in use: to be moved out of the store. */
  readonly retire: readonly string[]
}

/** The flags of a DNSKEY tell a ZSK from the other roles. */
function isZsk({ flags }: UsableKey): boolean {
  return flags === FLAGS_ZSK
}

/**
 * Decides what to do now. It does no more than the caches of validators allow, so it may be called at any time and any
 * number of times: the same state at the same time gives the same plan.
 */
export function plan(input: PlanInput): RollPlan {
  const draft = new Draft(input)
  draft.followPolicy()
  draft.passTime()
  draft.answerRequests()
  draft.replaceOld()
  const create = draft.fillRoles()
  // Without all wanted keys, a move could remove the last key of a role.
  if (create.length === 0) {
    const moved = move(draft.state, input.nowSeconds)
    draft.state = moved.state
    draft.steps.push(...moved.steps)
  }
  const retire = draft.removeUnused()
  return { state: draft.state, steps: draft.steps, create, retire }
}

function rolesOf({ split }: KeyLayout): readonly KeyRole[] {
  return split ? ['ksk', 'zsk'] : ['csk']
}

class Draft {
  state: RollState
  readonly steps: string[] = []
  readonly #input: PlanInput

  constructor(input: PlanInput) {
    this.#input = input
    this.state = input.state ?? this.#begin()
  }

  /** Keys that are in the store before their zone was signed here are in use: another server signed with them. */
  #begin(): RollState {
    const { policy, usable, nowSeconds } = this.#input
    const configured = { split: policy.split, algorithm: policy.algorithm }
    const algorithm = usable.some((key) => key.algorithm === configured.algorithm)
      ? configured.algorithm
      : Math.max(...usable.map((key) => key.algorithm))
    const isSplit = usable.some((key) => isZsk(key))
    const wanted = usable.length === 0 ? configured : { split: isSplit, algorithm }
    const keys = usable.map(({ id, ...key }): RollKey => {
      const isLone = !usable.some((one) => isZsk(one) && one.algorithm === key.algorithm)
      const role = isZsk({ id, ...key }) ? 'zsk' : isLone ? 'csk' : 'ksk'
      const isWanted = key.algorithm === algorithm
      return { id, role, algorithm: key.algorithm, isWanted, sinceSeconds: nowSeconds }
    })
    const idsOf = (role: KeyRole): readonly string[] => {
      return keys
        .filter((key) => key.role !== role)
        .map(({ id }) => id)
        .sort()
    }
    const none = settled([], nowSeconds)
    const rest = { isSigned: true, askedSeconds: 0, claim: undefined, requests: [] }
    const common = { configured, wanted, keys, ...rest }
    if (keys.length === 0) return { ...common, dnskey: none, signers: none, ds: none }
    this.steps.push(`use ${keys.map(keyName).join(' and ')}, found in the key store`)
    const all = keys.map(({ id }) => id).sort()
    return {
      ...common,
      dnskey: moveTo(none, all, nowSeconds),
      signers: moveTo(none, idsOf('ksk'), nowSeconds),
      // The parent may have the DS already.
      ds: alsoSeen(none, idsOf('zsk')),
    }
  }

  /** A change of the policy changes which keys are wanted. A request of `sextant keys` holds until then. */
  followPolicy(): void {
    const { split, algorithm } = this.#input.policy
    const { configured } = this.state
    if (configured.split === split && configured.algorithm === algorithm) return
    this.state = { ...this.state, configured: { split, algorithm }, wanted: { split, algorithm } }
  }

  passTime(): void {
    const { nowSeconds } = this.#input
    this.state = mapTimelines(this.state, (timeline) =>
      expire(restartWaits(timeline, nowSeconds), nowSeconds),
    )
    this.#correctTimes(nowSeconds)
  }

  /** The clock may have been put back. */
  #correctTimes(nowSeconds: number): void {
    const { askedSeconds, keys } = this.state
    const servedSeconds = nowSeconds + this.#input.policy.zonePropagationSeconds + 1
    const isAhead = askedSeconds !== Infinity && askedSeconds > servedSeconds
    if (!isAhead && keys.every((key) => key.sinceSeconds <= nowSeconds)) return
    this.state = {
      ...this.state,
      askedSeconds: isAhead ? servedSeconds : askedSeconds,
      keys: keys.map((key) => ({ ...key, sinceSeconds: Math.min(key.sinceSeconds, nowSeconds) })),
    }
  }

  answerRequests(): void {
    const waiting = this.state.requests.filter((request) => !this.#answer(request))
    if (waiting.length < this.state.requests.length) {
      this.state = { ...this.state, requests: waiting }
    }
  }

  /** Returns false if the request must wait. */
  #answer(request: RollRequest): boolean {
    switch (request.kind) {
      case 'roll':
        return this.#roll(request)
      case 'layout':
        if (this.#isRolling()) return false
        this.state = { ...this.state, wanted: request.layout }
        return true
      case 'retire':
        return this.#drop(request.id)
      case 'delegation':
        this.state = { ...this.state, isSigned: request.isSigned }
        return true
      case 'published':
        this.#notePublished(request)
        return true
    }
  }

  #roll(request: RollRequest & { kind: 'roll' }): boolean {
    const { role } = request
    if (!rolesOf(this.state.wanted).includes(role)) {
      this.#refuse(request, `the zone has no ${role.toUpperCase()}`)
      return true
    }
    if (this.#isRolling(role)) return false
    const old = this.state.keys.filter((key) => key.role === role && key.isWanted)
    this.#setOut(old, `roll ${old.map(keyName).join(' and ')} as requested`)
    return true
  }

  #drop(id: string): boolean {
    const key = this.state.keys.find((one) => one.id === id)
    if (key?.isWanted) this.#setOut([key], `retire ${keyName(key)} as requested`)
    // A key that waits for its use is wanted by no roll once it has left the store.
    else if (key === undefined && this.#input.usable.some((one) => one.id === id)) return false
    return true
  }

  /** A confirmation does not wait: until older CDS are gone, the parent may follow them after it. */
  #notePublished(request: RollRequest & { kind: 'published' }): void {
    const { policy, nowSeconds } = this.#input
    if (!equalIds(request.ids, this.state.ds.keys)) {
      this.#refuse(request, 'the parent should have other DS records now')
      return
    }
    if (!isAsked(this.state, nowSeconds)) {
      this.#refuse(request, 'it came before all servers of the zone had the CDS')
      return
    }
    const seen = { keys: request.ids, ttlSeconds: 0, atSeconds: nowSeconds }
    this.state = noteParent(this.state, seen, policy, nowSeconds)
    this.steps.push('the parent has the DS records, as the user says')
  }

  #refuse(request: RollRequest, reason: string): void {
    this.steps.push(`ignore '${printRequest(request)}': ${reason}`)
  }

  /** True if a key of the role, or any, is on its way out. */
  #isRolling(role?: KeyRole): boolean {
    return this.state.keys.some((key) => !key.isWanted && (role === undefined || key.role === role))
  }

  #setOut(old: readonly RollKey[], step: string): void {
    const { nowSeconds } = this.#input
    const keys = this.state.keys.map((key) =>
      old.includes(key) ? { ...key, isWanted: false, sinceSeconds: nowSeconds } : key,
    )
    this.state = { ...this.state, keys }
    this.steps.push(step)
  }

  /** Keys that are too old, or that the wanted layout has no use for. */
  replaceOld(): void {
    const { policy, nowSeconds } = this.#input
    const { wanted, keys } = this.state
    for (const role of rolesOf(wanted)) {
      const due = keys.filter((key) => {
        return key.role === role && key.isWanted && nowSeconds >= dueSeconds(key, policy)
      })
      if (due.length === 0 || this.#isRolling(role)) continue
      this.#setOut(due, `roll ${due.map(keyName).join(' and ')} at the end of its lifetime`)
    }
    const others = this.state.keys.filter((key) => key.isWanted && !fits(key, wanted))
    // One change of the layout at a time: the next one waits for the end of all rolls.
    if (others.length === 0 || this.#isRolling()) return
    const layout = `${wanted.split ? 'KSK and ZSK' : 'CSK'} with ${printAlgorithm(wanted.algorithm)}`
    this.#setOut(others, `replace ${others.map(keyName).join(' and ')} by ${layout}`)
  }

  /** Gives each role a key from the store. Returns those that the store lacks. */
  fillRoles(): readonly NewKey[] {
    const { usable, nowSeconds } = this.#input
    const create: NewKey[] = []
    const { algorithm } = this.#aim()
    const refused = this.#retireRequests()
    for (const role of rolesOf(this.#aim())) {
      if (this.state.keys.some((key) => key.role === role && key.isWanted)) continue
      const spare = usable.find((key) => {
        const isNew = !this.state.keys.some((one) => one.id === key.id)
        if (!isNew || refused.includes(key.id)) return false
        return key.algorithm === algorithm && isZsk(key) === (role === 'zsk')
      })
      if (spare === undefined) create.push({ role, algorithm })
      else this.#adopt({ id: spare.id, role, algorithm, isWanted: true, sinceSeconds: nowSeconds })
    }
    return create
  }

  /** The layout of the wanted keys. It differs from `wanted` while a roll of the layout before is not over. */
  #aim(): KeyLayout {
    const { wanted, keys } = this.state
    const held = keys.find((key) => key.isWanted && !fits(key, wanted))
    return held === undefined ? wanted : { split: held.role !== 'csk', algorithm: held.algorithm }
  }

  #adopt(key: RollKey): void {
    this.state = { ...this.state, keys: [...this.state.keys, key] }
    this.steps.push(`use ${keyName(key)}`)
  }

  /** Returns keys that no cache knows any more. Those that have left the store are forgotten. */
  removeUnused(): readonly string[] {
    const { usable } = this.#input
    const unused = this.state.keys.filter(
      (key) =>
        !key.isWanted && TIMELINES.every((name) => phaseOf(this.state[name], key.id) === 'hidden'),
    )
    const isStored = ({ id }: { id: string }): boolean => usable.some((one) => one.id === id)
    const gone = unused.filter((key) => !isStored(key))
    if (gone.length > 0) {
      this.state = { ...this.state, keys: this.state.keys.filter((key) => !gone.includes(key)) }
      this.steps.push(...gone.map((key) => `${keyName(key)} is out of use`))
    }
    const spares = this.#retireRequests().filter(
      (id) => !this.state.keys.some((key) => key.id === id),
    )
    return [...unused.filter(isStored).map(({ id }) => id), ...spares]
  }

  /** Ids of keys that should leave the store without having been used. */
  #retireRequests(): readonly string[] {
    return this.state.requests.flatMap((one) => (one.kind === 'retire' ? [one.id] : []))
  }
}

function fits({ role, algorithm }: RollKey, wanted: KeyLayout): boolean {
  return algorithm === wanted.algorithm && rolesOf(wanted).includes(role)
}

/** When a key should be replaced; Infinity = never. */
export function dueSeconds(key: RollKey, policy: RollPolicy): number {
  return key.sinceSeconds + policy.lifetimeSeconds[key.role]
}
