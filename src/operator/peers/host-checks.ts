import type { HealthObservation } from '../../health/address-health.ts'
import type { Leaf } from '../../health/record-probes.ts'
import { type PeerEndpoint, printTargets } from '../../peering/peer-endpoint.ts'
import { bareHost } from '../../peering/peer-status.ts'
import type { Publishing } from '../plan/decide.ts'
import type { PeerProbing } from '../probes/peer-probing.ts'

/** What one record of this cluster has. */
interface RecordFacts {
  readonly publishing: Publishing
  readonly own: readonly PeerEndpoint[]
  /** What its own probes found. */
  readonly findings: ReadonlyMap<string, 'up' | 'down'>
}

interface Member extends RecordFacts {
  /** What of it counts for the other records of the host, as text. */
  readonly text: string
  /** Addresses of peers to probe for it. */
  leaves: readonly Leaf[]
}

interface Host {
  readonly members: Map<string, Member>
  /** The record whose health check holds for addresses of peers; '' = no record has one. */
  checkedKey: string
  /** What our probes had found at the last `put`, as text. */
  observed: string
}

/** What all records of one host have. */
interface FactsOfHost extends Omit<RecordFacts, 'publishing'> {
  /** As in Host. */
  readonly checkedKey: string
  readonly observed: readonly HealthObservation[]
}

/**
 * The records of each host of this cluster. Decisions about addresses of peers are per host: the health check of the
 * first record with one holds, by key, and what one record finds counts for all, as at a plain server.
 */
export class HostChecks {
  readonly #probing: PeerProbing | undefined
  readonly #onEvent: (key: string) => void
  readonly #hosts = new Map<string, Host>()
  /** Host by record key. */
  readonly #hostOf = new Map<string, string>()

  /** `onEvent`: the facts of the host of this record have changed. */
  constructor(probing: PeerProbing | undefined, onEvent: (key: string) => void) {
    this.#probing = probing
    this.#onEvent = onEvent
  }

  /** Sets what a record has, and requests the reconcile of the others that this affects. */
  put(facts: RecordFacts): FactsOfHost {
    const { key } = facts.publishing.record
    const name = bareHost(facts.publishing.rootHost)
    if (this.#hostOf.get(key) !== name) this.remove(key)
    const host = this.#hosts.get(name) ?? { members: new Map(), checkedKey: '', observed: '' }
    this.#hosts.set(name, host)
    this.#hostOf.set(key, name)
    const before = host.members.get(key)
    const text = textOf(facts)
    host.members.set(key, { ...facts, text, leaves: before?.leaves ?? [] })
    this.#choose(host)
    const observed = this.#observedOf(host)
    const observedText = JSON.stringify(observed)
    const isNews = before?.text !== text || host.observed !== observedText
    host.observed = observedText
    if (isNews) this.#notify(host, key)
    const members = [...host.members.values()]
    return {
      own: members.flatMap(({ own }) => own),
      findings: joinFindings(members),
      checkedKey: host.checkedKey,
      observed,
    }
  }

  /** What our probes found of addresses of peers for the host of a record. */
  observationsOf(key: string): readonly HealthObservation[] {
    const host = this.#hostByKey(key)
    return host === undefined ? [] : this.#observedOf(host)
  }

  /** The health check that holds for the host of a record. */
  checkOf(key: string): Publishing['content']['healthCheck'] {
    const host = this.#hostByKey(key)
    return host?.members.get(host.checkedKey)?.publishing.content.healthCheck
  }

  /** Probes these addresses for a record, instead of those before. */
  watch(key: string, leaves: readonly Leaf[]): void {
    const host = this.#hostByKey(key)
    const member = host?.members.get(key)
    if (host === undefined || member === undefined) return
    member.leaves = leaves
    this.#probe(host)
  }

  remove(key: string): void {
    const host = this.#hostByKey(key)
    if (host === undefined) return
    host.members.delete(key)
    this.#choose(host)
    if (host.members.size === 0) this.#hosts.delete(this.#hostOf.get(key)!)
    this.#hostOf.delete(key)
    this.#notify(host, key)
  }

  #hostByKey(key: string): Host | undefined {
    return this.#hosts.get(this.#hostOf.get(key) ?? '')
  }

  /** Chooses the record whose health check holds. What was found by another one stays in force. */
  #choose(host: Host): void {
    const checked = [...host.members].filter(([, { publishing }]) => publishing.content.healthCheck)
    const [key = ''] = checked.map(([one]) => one).sort()
    const before = host.checkedKey
    if (key === before) return
    const found = before === '' ? [] : (this.#probing?.observationsOf(before) ?? [])
    host.checkedKey = key
    if (key !== '' && found.length > 0) this.#probing?.recall(key, found)
    this.#probe(host)
    if (before !== '') this.#probing?.forget(before)
  }

  #probe({ members, checkedKey }: Host): void {
    const publishing = members.get(checkedKey)?.publishing
    if (publishing === undefined) return
    const { record, content } = publishing
    const leaves = new Map<string, Leaf>()
    for (const leaf of [...members.values()].flatMap((member) => member.leaves)) {
      if (!leaves.has(leaf.address)) leaves.set(leaf.address, leaf)
    }
    const { namespace, name } = record
    this.#probing?.watch({ namespace, name, content }, [...leaves.values()])
  }

  /** A record without probes has what an earlier leader found for it. */
  #observedOf({ members }: Host): readonly HealthObservation[] {
    const found = [...members.keys()].flatMap((key) => this.#probing?.observationsOf(key) ?? [])
    return [...new Map(found.map((one) => [one.address, one])).values()]
  }

  #notify({ members }: Host, except: string): void {
    for (const key of members.keys()) if (key !== except) this.#onEvent(key)
  }
}

function textOf({ publishing, own, findings }: RecordFacts): string {
  const names = own.map(({ endpoint }) => printTargets(endpoint))
  return JSON.stringify([publishing.content.healthCheck, names, [...findings]])
}

/** An address of several records is up if one of them finds it up. */
function joinFindings(members: readonly RecordFacts[]): ReadonlyMap<string, 'up' | 'down'> {
  const found = new Map<string, 'up' | 'down'>()
  for (const [address, health] of members.flatMap(({ findings }) => [...findings])) {
    if (health === 'up' || !found.has(address)) found.set(address, health)
  }
  return found
}
