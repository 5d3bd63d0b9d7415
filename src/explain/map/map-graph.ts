import { RRType } from '../../dns/iana/types.ts'
import { ALIASES_MAX } from '../../dns/message/direct-answer.ts'
import { lowerName, nameKey, printName } from '../../dns/name/name.ts'
import { printRdata } from '../../dns/rdata/index.ts'
import { SLOW_START_UNITS } from '../../health/slow-start-units.ts'
import type { MapAnswer } from '../../plugin/admin-map.ts'
import { type BuiltEndpoint, printDrop, targetsOut } from '../endpoints.ts'
import type { MapSet } from './map-set.ts'

/** Returns the RRset that answers for a name and type; undefined = no zone of the server has the name. */
type FindSet = (name: Uint8Array, type: number) => MapSet | undefined

/** One outcome of a draw. */
interface GraphOutcome {
  /** Probability in its tier. */
  readonly part: number
  /** Answers that clients get together. */
  readonly answers: readonly number[]
  /** The node that a CNAME leads to; undefined = the outcome is the end. */
  readonly next: GraphNode | undefined
}

/** An RRset that clients are led to. */
export interface GraphNode {
  readonly set: MapSet
  readonly tiers: readonly (readonly GraphOutcome[])[]
}

/** RRsets that CNAME records lead to. More are shown as the name. */
const NODES_MAX = 64
const NO_ENDPOINT = { setIdentifier: '', record: '', weight: null, detail: '' }

/** The RRsets that the clients of a name are led through, and the answers at their ends. */
export class MapGraph {
  readonly root: GraphNode
  readonly nodes: GraphNode[] = []
  readonly answers: MapAnswer[] = []
  readonly #type: number
  readonly #find: FindSet
  readonly #byName = new Map<string, GraphNode>()
  readonly #outside = new Map<string, number>()

  constructor(root: MapSet, type: number, find: FindSet) {
    this.#type = type
    this.#find = find
    this.root = this.#add(root.owner, root, ALIASES_MAX)
  }

  /** `name`: as asked for. `steps`: CNAME records that the server still follows. */
  #add(name: Uint8Array, set: MapSet, steps: number): GraphNode {
    const isEnd = set.type === this.#type || set.type !== RRType.CNAME
    const answerOf = isEnd ? this.#addAnswers(set) : undefined
    const tiers: GraphOutcome[][] = []
    const node = { set, tiers }
    // First, so that a loop finds it.
    this.nodes.push(node)
    this.#byName.set(nameKey(name), node)
    // In the order of the endpoints, also those out of service, so that answers keep their numbers.
    const endpoints = isEnd ? [] : (set.built?.endpoints ?? [])
    for (const { contribution } of endpoints) {
      for (const target of contribution.endpoint.rdata) this.#follow(set, target, steps)
    }
    for (const [number, tier] of set.tiers.entries()) {
      const sum = tier.reduce((total, { weight }) => total + weight, 0)
      tiers.push(
        tier.map(({ weight, rdataIndexes }, i): GraphOutcome => {
          const part = weight / sum
          const [first] = rdataIndexes
          if (first === undefined) return { part, answers: [this.#noData(set)], next: undefined }
          if (answerOf !== undefined) {
            return { part, answers: set.members[number]![i]!.map(answerOf), next: undefined }
          }
          return { part, ...this.#follow(set, set.rdata[first]!, steps) }
        }),
      )
    }
    return node
  }

  #follow(set: MapSet, target: Uint8Array, steps: number): Omit<GraphOutcome, 'part'> {
    const name = lowerName(target)
    const known = this.#byName.get(nameKey(name))
    if (known !== undefined) return { answers: [], next: known }
    const isShort = steps > 0 && this.nodes.length < NODES_MAX
    const found = isShort ? this.#find(name, this.#type) : undefined
    if (found !== undefined) return { answers: [], next: this.#add(name, found, steps - 1) }
    const text = printName(target)
    const answer = this.#outside.get(text) ?? this.#addOutside(set, text)
    return { answers: [answer], next: undefined }
  }

  #addOutside(set: MapSet, target: string): number {
    const name = printName(set.owner)
    const state = 'outside' as const
    const number = this.answers.push({ ...NO_ENDPOINT, name, targets: [target], state }) - 1
    this.#outside.set(target, number)
    return number
  }

  #noData(set: MapSet): number {
    const name = printName(set.owner)
    const isSame = (one: MapAnswer): boolean => one.state === 'no data' && one.name === name
    const known = this.answers.findIndex(isSame)
    if (known !== -1) return known
    return this.answers.push({ ...NO_ENDPOINT, name, targets: [], state: 'no data' }) - 1
  }

  /** Adds the endpoints of an RRset. Returns the function from their index to the number of the answer. */
  #addAnswers(set: MapSet): (member: number) => number {
    const first = this.answers.length
    const name = printName(set.owner)
    const { built, labels, rdata, type } = set
    if (labels !== undefined) {
      this.answers.push(...labels)
    } else if (built === undefined) {
      for (const one of rdata) {
        const targets = [printRdata(type, one)]
        this.answers.push({ ...NO_ENDPOINT, name, targets, state: 'served' })
      }
    } else {
      // The first ones are listed, so those without a chance to serve come last.
      const { endpoints } = built
      const own = [...endpoints.keys()].filter((i) => canServe(endpoints[i]!))
      const others = [...endpoints.keys()].filter((i) => !canServe(endpoints[i]!))
      const numbers = new Map([...own, ...others].map((i, place) => [i, first + place]))
      for (const i of numbers.keys()) this.answers.push(describe(name, set, endpoints[i]!))
      return (member) => numbers.get(member)!
    }
    return (member) => first + member
  }
}

/** True for an endpoint that serves, or would if its health or drains changed. */
function canServe({ dropped }: BuiltEndpoint): boolean {
  return dropped === undefined || dropped.kind === 'down' || dropped.kind === 'drained'
}

function describe(name: string, { rdata, type, zones }: MapSet, built: BuiltEndpoint): MapAnswer {
  const { contribution, dropped, candidates } = built
  const { key, endpoint } = contribution
  const [candidate] = candidates
  const served = candidate?.rdataIndexes.map((index) => rdata[index]!) ?? endpoint.rdata
  const { state, detail } = stateOf(built)
  const out = zones === undefined || dropped !== undefined ? [] : targetsOut(contribution, zones)
  const reasons = out.map(({ target, reason }) => `${target} ${reason}`)
  return {
    name,
    targets: served.map((one) => printRdata(endpoint.type === type ? type : endpoint.type, one)),
    setIdentifier: endpoint.setIdentifier,
    record: key.includes('/') ? key : '',
    weight: endpoint.weight ?? null,
    state,
    detail: [...(detail === '' ? [] : [detail]), ...reasons].join('; '),
  }
}

function stateOf({
  contribution,
  dropped,
  candidates,
}: BuiltEndpoint): Pick<MapAnswer, 'state' | 'detail'> {
  const { endpoint, down, drained, units = SLOW_START_UNITS } = contribution
  if (dropped !== undefined) {
    const isOut = dropped.kind === 'down' || dropped.kind === 'drained'
    return { state: isOut ? (dropped.kind as 'down') : 'not served', detail: printDrop(dropped) }
  }
  const outCount = endpoint.rdata.filter((_, i) => down.has(i) || drained?.has(i) === true).length
  if (outCount === endpoint.rdata.length) {
    const state = down.size < outCount ? 'drained' : 'down'
    return { state, detail: 'served because no endpoint is in service' }
  }
  if (outCount > 0) return { state: 'partly down', detail: '' }
  if (units < SLOW_START_UNITS) {
    return {
      state: 'slow start',
      detail: `${Math.round((units / SLOW_START_UNITS) * 100)} % of its weight`,
    }
  }
  return { state: candidates[0]?.weight === 0 ? 'standby' : 'served', detail: '' }
}
