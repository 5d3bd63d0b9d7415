import type { ApiObject } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import { type ClientRules, OPEN_RULES } from '../rules/rule.ts'
import { comparePolicies, compileRules } from './compile-rules.ts'
import type { LabelMap } from './label-selector.ts'
import { namespaceLabels, type Pod, readPod } from './pod.ts'
import {
  DEFAULT_POLICY_OPTIONS,
  hasEffect,
  type Policy,
  type PolicyOptions,
  type ScannedPolicies,
} from './policy.ts'
import { PolicyField, type PolicyProblem, printFieldPath } from './policy-field.ts'
import {
  contentOf,
  identityOf,
  NAMESPACES,
  OBJECT_FIELDS,
  PODS,
  type PolicyKind,
} from './policy-kinds.ts'
import { type GroupedPod, Workload } from './workload.ts'

/** A Pod that some policy selects, as a client of the node agent. */
export interface SelectedPod {
  /** `namespace/name/uid`. */
  readonly id: string
  /** In canonical form, at most one of each family. */
  readonly addresses: readonly string[]
  readonly rules: ClientRules
}

export interface CompiledPolicies {
  /** By id. Those that did not change are the same objects as before. */
  readonly clients: readonly SelectedPod[]
  readonly problems: readonly PolicyProblem[]
}

interface HeldPolicies extends ScannedPolicies {
  /** What they were read from. */
  readonly content: string
}

/** Sets of policies whose rules are kept without being in use. */
const SPARE_RULES_MAX = 64

/**
 * Compiles Pods, Namespaces and policies to clients, again and again as they change:
 *
 *     policy ─▶ parsed, if its spec changed ─▶ workloads of its namespace, or of all
 *     Pod    ─▶ workload ─▶ set of policies ─▶ rules, one object for each set ─▶ client
 *
 * The result does not depend on the order of the changes.
 */
export class PolicyCompiler {
  readonly #options: PolicyOptions
  readonly #kinds = new Map<PolicyKind, Map<string, HeldPolicies>>()
  /** By namespace; '' = those of all namespaces. */
  readonly #policies = new Map<string, Set<Policy>>()
  readonly #namespaces = new Map<string, LabelMap>()
  /** By `namespace/name`. */
  readonly #pods = new Map<string, GroupedPod>()
  readonly #workloads = new Map<string, Workload>()
  readonly #workloadsOf = new Map<string, Set<Workload>>()
  readonly #holders = new Map<string, Set<GroupedPod>>()
  /** By the numbers of their policies. */
  #rules = new Map<string, ClientRules>()
  readonly #numbers = new WeakMap<Policy, number>()
  #lastNumber = 0
  #clients = new Map<string, SelectedPod>()
  /** Pods whose client may have changed. */
  readonly #changed = new Set<GroupedPod>()
  #haveProblemsChanged = false
  #compiled: CompiledPolicies = { clients: [], problems: [] }

  constructor(options: PolicyOptions = DEFAULT_POLICY_OPTIONS) {
    this.#options = options
  }

  /** Applies the current state of an object. Returns its key, `namespace/name`. */
  put(kind: PolicyKind, object: ApiObject): string {
    const key = keyOf(object)
    if (kind === PODS) this.#putPod(key, readPod(object))
    else if (kind === NAMESPACES) this.#putNamespace(key, object)
    else this.#putPolicies(kind, key, object)
    return key
  }

  remove(kind: PolicyKind, key: string): void {
    if (kind === PODS) this.#dropPod(key)
    else if (kind === NAMESPACES) this.#putNamespace(key, undefined)
    else this.#hold(kind, key, undefined)
  }

  /** Keys of all objects of a kind. */
  keys(kind: PolicyKind): readonly string[] {
    if (kind === PODS) return [...this.#pods.keys()]
    if (kind === NAMESPACES) return [...this.#namespaces.keys()]
    return [...this.#of(kind).keys()]
  }

  /** Returns the clients as of now; the same result as before if nothing changed. */
  compile(): CompiledPolicies {
    let { clients, problems } = this.#compiled
    let isOther = false
    for (const grouped of this.#changed) isOther = this.#compileClient(grouped) || isOther
    this.#changed.clear()
    if (isOther) {
      clients = [...this.#clients.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
      // A list that is almost sorted takes the next sort a tenth of the time.
      this.#clients = new Map(clients.map((client) => [client.id, client]))
    }
    if (this.#haveProblemsChanged) problems = this.#allProblems()
    this.#haveProblemsChanged = false
    if (isOther || problems !== this.#compiled.problems) this.#compiled = { clients, problems }
    if (this.#rules.size > this.#workloads.size + SPARE_RULES_MAX) this.#dropSpareRules()
    return this.#compiled
  }

  #putPod(key: string, pod: Pod): void {
    const known = this.#pods.get(key)?.pod
    if (known !== undefined && isSamePod(known, pod)) return
    this.#dropPod(key)
    const workload = this.#workloadOf(pod)
    const grouped = { pod, workload }
    this.#pods.set(key, grouped)
    workload.pods.add(grouped)
    for (const address of pod.addresses) {
      setIn(this.#holders, address).add(grouped)
      this.#noteHolders(address)
    }
    this.#changed.add(grouped)
  }

  #dropPod(key: string): void {
    const grouped = this.#pods.get(key)
    if (grouped === undefined) return
    const { pod, workload } = grouped
    this.#pods.delete(key)
    workload.pods.delete(grouped)
    if (workload.pods.size === 0) {
      this.#workloads.delete(Workload.keyOf(pod))
      dropIn(this.#workloadsOf, pod.namespace, workload)
    }
    for (const address of pod.addresses) {
      dropIn(this.#holders, address, grouped)
      this.#noteHolders(address)
    }
    this.#changed.add(grouped)
  }

  #noteHolders(address: string): void {
    for (const holder of this.#holders.get(address) ?? []) this.#changed.add(holder)
  }

  #workloadOf(pod: Pod): Workload {
    const key = Workload.keyOf(pod)
    const known = this.#workloads.get(key)
    if (known !== undefined) return known
    const { namespace } = pod
    const labels = this.#namespaces.get(namespace) ?? namespaceLabels(namespace, undefined)
    const workload = new Workload(pod, labels)
    this.#workloads.set(key, workload)
    setIn(this.#workloadsOf, namespace).add(workload)
    this.#select(workload)
    return workload
  }

  #putNamespace(name: string, object: ApiObject | undefined): void {
    const labels = namespaceLabels(name, object)
    const known = this.#namespaces.get(name) ?? namespaceLabels(name, undefined)
    if (object === undefined) this.#namespaces.delete(name)
    else this.#namespaces.set(name, labels)
    if (isSameLabels(labels, known)) return
    for (const workload of this.#workloadsOf.get(name) ?? []) {
      workload.setNamespaceLabels(labels)
      this.#select(workload)
    }
  }

  /** Finds the policies of a workload. */
  #select(workload: Workload): void {
    workload.policies.clear()
    for (const namespace of ['', workload.namespace]) {
      for (const policy of this.#policies.get(namespace) ?? []) {
        if (workload.isSelectedBy(policy)) workload.policies.add(policy)
      }
    }
    this.#noteWorkload(workload)
  }

  #noteWorkload(workload: Workload): void {
    workload.rules = undefined
    for (const grouped of workload.pods) this.#changed.add(grouped)
  }

  #putPolicies(kind: PolicyKind, key: string, object: ApiObject): void {
    const content = contentOf(object)
    if (this.#of(kind).get(key)?.content === content) return
    const identity = identityOf(kind, object)
    const scanned = kind.scan?.(object, identity, this.#options)
    if (scanned === undefined) return
    const problems = [...scanned.problems]
    PolicyField.root(identity.origin, object, problems).hasOnly(OBJECT_FIELDS)
    this.#hold(kind, key, { ...scanned, problems, content })
  }

  /** Replaces the policies of an object. */
  #hold(kind: PolicyKind, key: string, next: HeldPolicies | undefined): void {
    const held = this.#of(kind)
    const before = held.get(key)
    if (next === undefined) held.delete(key)
    else held.set(key, next)
    const problemCount = (before?.problems.length ?? 0) + (next?.problems.length ?? 0)
    if (problemCount > 0) this.#haveProblemsChanged = true
    for (const policy of before?.policies ?? []) {
      dropIn(this.#policies, policy.subject.namespace, policy)
      for (const workload of this.#workloadsIn(policy.subject.namespace)) {
        if (workload.policies.delete(policy)) this.#noteWorkload(workload)
      }
    }
    for (const policy of next?.policies ?? []) {
      this.#numbers.set(policy, ++this.#lastNumber)
      setIn(this.#policies, policy.subject.namespace).add(policy)
      for (const workload of this.#workloadsIn(policy.subject.namespace)) {
        if (!workload.isSelectedBy(policy)) continue
        workload.policies.add(policy)
        this.#noteWorkload(workload)
      }
    }
  }

  #workloadsIn(namespace: string): Iterable<Workload> {
    return namespace === '' ? this.#workloads.values() : (this.#workloadsOf.get(namespace) ?? [])
  }

  #of(kind: PolicyKind): Map<string, HeldPolicies> {
    const known = this.#kinds.get(kind)
    if (known !== undefined) return known
    const held = new Map<string, HeldPolicies>()
    this.#kinds.set(kind, held)
    return held
  }

  /** Returns true if the client of the Pod changed. */
  #compileClient(grouped: GroupedPod): boolean {
    const { pod, workload } = grouped
    const { id } = pod
    const known = this.#clients.get(id)
    const isHeld = workload.pods.has(grouped)
    // The same Pod may be held in another workload.
    if (!isHeld && this.#pods.get(podKey(id))?.pod.id === id) return false
    const addresses = isHeld ? pod.addresses.filter((one) => this.#holderOf(one) === grouped) : []
    const isSelected = [...workload.policies].some(hasEffect)
    const isClient = isSelected || this.#options.everyPod === true
    if (addresses.length === 0 || !isClient) return this.#clients.delete(id)
    const rules = isSelected ? (workload.rules ??= this.#rulesOf(workload)) : OPEN_RULES
    if (known?.rules === rules && isSameList(known.addresses, addresses)) return false
    this.#clients.set(id, { id, addresses, rules })
    return true
  }

  #holderOf(address: string): GroupedPod | undefined {
    let holder: GroupedPod | undefined
    for (const one of this.#holders.get(address) ?? []) {
      if (holder === undefined || one.pod.rank > holder.pod.rank) holder = one
    }
    return holder
  }

  #rulesOf({ policies }: Workload): ClientRules {
    const sorted = [...policies].sort(comparePolicies)
    const key = sorted.map((policy) => this.#numbers.get(policy)).join(' ')
    const known = this.#rules.get(key)
    if (known !== undefined) return known
    const rules = compileRules(sorted)
    this.#rules.set(key, rules)
    return rules
  }

  #dropSpareRules(): void {
    const used = new Set([...this.#workloads.values()].map(({ rules }) => rules))
    this.#rules = new Map([...this.#rules].filter(([, rules]) => used.has(rules)))
  }

  #allProblems(): readonly PolicyProblem[] {
    const all = [...this.#kinds.values()].flatMap((held) => [...held.values()])
    return all
      .flatMap(({ problems }) => problems)
      .sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
  }
}

function orderOf({ object, path, message }: PolicyProblem): string {
  return `${object} ${printFieldPath(path)} ${message}`
}

function setIn<T>(map: Map<string, Set<T>>, key: string): Set<T> {
  const known = map.get(key)
  if (known !== undefined) return known
  const added = new Set<T>()
  map.set(key, added)
  return added
}

function dropIn<T>(map: Map<string, Set<T>>, key: string, item: T): void {
  const items = map.get(key)
  items?.delete(item)
  if (items?.size === 0) map.delete(key)
}

/** `namespace/name` of `namespace/name/uid`. */
function podKey(id: string): string {
  return id.slice(0, id.lastIndexOf('/'))
}

function isSamePod(a: Pod, b: Pod): boolean {
  return (
    a.id === b.id &&
    a.rank === b.rank &&
    a.serviceAccount === b.serviceAccount &&
    isSameList(a.addresses, b.addresses) &&
    isSameLabels(a.labels, b.labels)
  )
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i])
}

function isSameLabels(a: LabelMap, b: LabelMap): boolean {
  if (a.size !== b.size) return false
  for (const [key, value] of a) if (b.get(key) !== value) return false
  return true
}
