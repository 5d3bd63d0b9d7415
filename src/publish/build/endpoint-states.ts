import type { EndpointHistory, NotedEndpoint } from '../../base/telemetry/endpoint-history.ts'
import type { EventActor } from '../../base/telemetry/event-log.ts'
import { ALIAS_TYPE } from '../../records/dns-record.ts'
import { printTarget } from '../../records/print-endpoint.ts'
import type { DownReasons } from './down-reason.ts'
import { factsOf, impairmentOf, printImpairment, stateOf } from './endpoint-state.ts'
import type { Contribution, OwnerSet } from './owner-set.ts'

/** The endpoints of one owner after a change, and what caused it. */
export interface OwnerStates {
  /** `lowerNameKey` of the owner. */
  readonly key: string
  readonly actor: EventActor
  readonly contributions: readonly Contribution[]
  readonly before: readonly OwnerSet[]
  readonly after: readonly OwnerSet[]
}

interface EndpointStatesOptions {
  /** Distinguishes the publisher from others with the same zone. Contains no white space. */
  readonly place: string
  readonly downReasons: DownReasons
  /** Returns the history while changes are wanted. */
  readonly find: () => EndpointHistory | undefined
}

interface StagedOwner {
  readonly endpoints: readonly NotedEndpoint[]
  readonly actor: EventActor
}

/** Owners of one batch whose states are noted. */
const OWNERS_MAX = 20_000
/** Characters of the targets that identify an endpoint without a set identifier. */
const TARGETS_MAX = 200

/** Notes the states of endpoints in the history when they are published. */
export class EndpointStates {
  readonly #options: EndpointStatesOptions
  /** By owner: its endpoints after the last change of this batch. */
  #staged = new Map<string, StagedOwner>()

  constructor(options: EndpointStatesOptions) {
    this.#options = options
  }

  note(zone: string, change: OwnerStates): void {
    const history = this.#options.find()
    if (history === undefined) return
    const owner = historyKey(this.#options.place, zone, change.key)
    const isStaged = this.#staged.has(owner)
    if (!isStaged && !history.has(owner) && isWhole(change)) return
    if (!isStaged && this.#staged.size >= OWNERS_MAX) return
    const { actor, before, after, contributions } = change
    const known = new Set(before.flatMap(({ endpoints }) => endpoints.map((m) => m.endpoint)))
    const isKnown = ({ endpoint }: Contribution): boolean => {
      if (known.has(endpoint)) return true
      const { type, setIdentifier } = endpoint
      return before.some((set) => {
        return (
          set.type === type && set.endpoints.some((m) => m.endpoint.setIdentifier === setIdentifier)
        )
      })
    }
    const endpoints = contributions
      .filter(({ endpoint }) => endpoint.type !== ALIAS_TYPE)
      .map((one) => {
        const facts = factsOf(one, zone)
        const shift = after.find(({ type }) => type === one.endpoint.type)?.shift
        const state = stateOf(one, shift)
        const reason = this.#reasonOf(one, facts.targets, shift)
        return { id: endpointId(one), facts, state, reason, isKnown: isKnown(one) }
      })
    this.#staged.set(owner, { endpoints, actor })
  }

  /** The changes so far are published. `causeOf`: returns the actor, and the decision of sites that explains it. */
  flush(
    causeOf: (actor: EventActor) => { readonly actor: EventActor; readonly text?: string },
  ): void {
    if (this.#staged.size === 0) return
    const staged = this.#staged
    this.#staged = new Map()
    const history = this.#options.find()
    for (const [owner, { endpoints, actor }] of staged) {
      const cause = causeOf(actor)
      const { text = '' } = cause
      const explained = endpoints.map((one) => ({ ...one, reason: one.reason || text }))
      history?.note(owner, explained, cause.actor)
    }
  }

  #reasonOf(one: Contribution, targets: readonly string[], shift: OwnerSet['shift']): string {
    const impairment = impairmentOf(one)
    if (impairment !== undefined) {
      return printImpairment(one, targets, impairment, this.#options.downReasons)
    }
    return shift?.percent === undefined ? '' : `to ${shift.to}: ${shift.text}`
  }
}

/** Returns the key of an owner in the history. `key`: its `lowerNameKey`. */
export function historyKey(place: string, zone: string, key: string): string {
  return `${place} ${zone} ${key}`
}

/** Returns the id of an endpoint in the history. */
export function endpointId({
  key,
  endpoint: { type, setIdentifier, rdata },
}: Contribution): string {
  if (setIdentifier !== '') return `${type} ${key} ${setIdentifier}`
  const targets = rdata.map((target) => printTarget(type, target)).join()
  return `${type} ${key}  ${targets.slice(0, TARGETS_MAX)}`
}

/** True if all endpoints are served in full, and none is shifted. */
function isWhole({ contributions, after }: OwnerStates): boolean {
  return (
    contributions.every((one) => impairmentOf(one) === undefined) &&
    after.every(({ shift }) => shift?.percent === undefined)
  )
}
