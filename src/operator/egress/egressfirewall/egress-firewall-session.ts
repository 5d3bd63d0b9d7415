import { namesOfRules, RULES_MAX } from '../../../egress/policies/openshift/firewall-names.ts'
import { resolverObjectName } from '../../../egress/policies/openshift/object-name.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import { Informer } from '../../../kube/informer.ts'
import type { ListWatch } from '../../../kube/list-watch.ts'
import { isAlreadyThere, Objects } from '../../../kube/objects.ts'
import { WorkQueue } from '../../../kube/work-queue.ts'
import type { ControllerEnv, ControllerSession } from '../../controller.ts'
import { itemsOf, mappingOf, metadataOf } from '../../record/fields.ts'
import { endWork } from '../end-work.ts'
import { chooseObject, dnsNameOf, NameObjects, subjectOf } from '../name-objects.ts'
import { EGRESS_FIREWALLS, type NameKind } from '../resources.ts'
import { NameReferences } from './name-references.ts'

const WORKERS = 4
/** Names that are tried for one object, as in OVN-Kubernetes. */
const NAMES_MAX = 10

export interface EgressFirewallSettings {
  /** Namespace of the objects. */
  readonly namespace: string
  /** What the objects are: DNSNameResolvers, unless the cluster has their first design. */
  readonly nameKind: NameKind
}

/** Counts the writes that were done. */
type CountWrite = (kind: 'create' | 'delete') => void

/**
 * Gives each DNS name that an EgressFirewall uses exactly one DNSNameResolver:
 *
 *     EgressFirewalls ─▶ names in use ─┐
 *                                      ├─▶ changed name ─▶ create, keep one, or delete
 *     DNSNameResolvers ─▶ by name ─────┘
 *
 * Nothing is written until both kinds were listed. After that, any change of either leads to the same
 * state, whatever the order of the events.
 */
export class EgressFirewallSession implements ControllerSession {
  readonly #env: ControllerEnv
  readonly #settings: EgressFirewallSettings
  readonly #count: CountWrite
  readonly #client: Objects
  readonly #firewalls: Informer
  readonly #resolvers: Informer
  readonly #references = new NameReferences()
  readonly #objects = new NameObjects()
  /** Name of the object of each DNS name, as it was created or adopted. */
  readonly #chosen = new Map<string, string>()
  /** EgressFirewalls with a fault in their rules, by key, and what was reported. */
  readonly #faults = new Map<string, string>()
  readonly #queue: WorkQueue
  #isClosed = false

  constructor(env: ControllerEnv, settings: EgressFirewallSettings, count: CountWrite) {
    this.#env = env
    this.#settings = settings
    this.#count = count
    this.#client = new Objects(env)
    this.#firewalls = new Informer({
      ...env,
      resource: EGRESS_FIREWALLS,
      // A name that is in use anywhere must not be deleted.
      namespaces: [],
      labelSelector: '',
      trim: trimFirewall,
    })
    this.#resolvers = new Informer({
      ...env,
      resource: settings.nameKind.resource,
      namespaces: [settings.namespace],
      labelSelector: '',
      trim: trimResolver,
    })
    this.#queue = new WorkQueue({
      ...env,
      what: 'egressfirewall',
      work: async (dnsName) => void (await this.#reconcile(dnsName)),
      workers: WORKERS,
    })
    this.#subscribe()
    void this.#start()
  }

  get watches(): readonly ListWatch[] {
    return [...this.#firewalls.watches, ...this.#resolvers.watches]
  }

  get reason(): string {
    return this.#firewalls.reason || this.#resolvers.reason
  }

  /** Number of names in use; 0 = the session has ended. */
  get names(): number {
    return this.#isClosed ? 0 : this.#references.size
  }

  /** Number of EgressFirewalls with a fault in their rules. */
  get faults(): number {
    return this.#isClosed ? 0 : this.#faults.size
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#firewalls.close()
    this.#resolvers.close()
    await endWork(this.#queue, this.#client, this.#env.timers)
  }

  async #start(): Promise<void> {
    this.#firewalls.start()
    this.#resolvers.start()
    await Promise.all([this.#firewalls.synced(), this.#resolvers.synced()])
    if (!this.#isClosed) this.#queue.start()
  }

  #subscribe(): void {
    this.#firewalls.subscribe({
      onAdd: (key, firewall) => this.#readFirewall(key, firewall),
      onUpdate: (key, firewall) => this.#readFirewall(key, firewall),
      onDelete: (key) => {
        this.#faults.delete(key)
        this.#refer(key, new Set())
      },
    })
    this.#resolvers.subscribe({
      onAdd: (_, object) => {
        this.#objects.put(object)
        this.#queue.add(dnsNameOf(object))
      },
      onUpdate: (_, object, before) => {
        this.#objects.remove(before)
        this.#objects.put(object)
        this.#queue.add(dnsNameOf(before))
        this.#queue.add(dnsNameOf(object))
      },
      onDelete: (_, before) => {
        this.#objects.remove(before)
        this.#queue.add(dnsNameOf(before))
      },
      onReturn: () => this.#queue.retryFailed(),
    })
  }

  #readFirewall(key: string, firewall: ApiObject): void {
    const rules = ruleNamesOf(firewall)
    const { names, invalid } = namesOfRules(rules)
    if (invalid !== undefined) {
      const note = `spec.egress[${invalid}].to.dnsName: invalid name ${JSON.stringify(rules[invalid])}; no name of this object is resolved`
      this.#report(key, firewall, 'InvalidDNSName', note)
    } else if (rules.length > RULES_MAX) {
      const note = `the rules after the first ${RULES_MAX} do not count`
      this.#report(key, firewall, 'TooManyRules', note)
    } else {
      this.#faults.delete(key)
    }
    this.#refer(key, names)
  }

  #refer(key: string, names: ReadonlySet<string>): void {
    for (const dnsName of this.#references.set(key, names)) this.#queue.add(dnsName)
  }

  /** Reports a fault of an EgressFirewall, once. */
  #report(key: string, firewall: ApiObject, reason: string, note: string): void {
    if (this.#faults.get(key) === note) return
    this.#faults.set(key, note)
    this.#env.log.warning(`egressfirewall ${key}: ${note}`, 'egressfirewall-problem')
    const subject = subjectOf(EGRESS_FIREWALLS, 'EgressFirewall', firewall)
    this.#env.events.record(subject, { type: 'Warning', reason, action: 'ReadRules', note })
  }

  async #reconcile(dnsName: string): Promise<void> {
    const objects = this.#objects.of(dnsName)
    if (!this.#references.has(dnsName)) {
      this.#chosen.delete(dnsName)
      for (const object of objects) await this.#delete(object)
      return
    }
    const kept = chooseObject(objects, this.#chosen.get(dnsName) ?? '')
    if (kept !== undefined) {
      this.#chosen.set(dnsName, textOf(kept.metadata, 'name'))
      for (const object of objects) if (object !== kept) await this.#delete(object)
    } else if (objects.length === 0) {
      // If one is being deleted, its end is the next event.
      await this.#create(dnsName)
    }
  }

  async #create(dnsName: string): Promise<void> {
    const { namespace } = this.#settings
    for (let collisions = 0; collisions < NAMES_MAX; collisions++) {
      const name = resolverObjectName(dnsName, collisions)
      const found = await this.#createAs(name, dnsName)
      if (found === undefined) return
      if (dnsNameOf(found) === dnsName) {
        this.#chosen.set(dnsName, name)
        return
      }
    }
    throw new Error(`the ${NAMES_MAX} names for its object in ${namespace} are those of others`)
  }

  /** Returns the object that has the name already. */
  async #createAs(name: string, dnsName: string): Promise<ApiObject | undefined> {
    const { namespace, nameKind } = this.#settings
    const { kind, resource } = nameKind
    if (!this.#env.mayWrite()) return undefined
    const { group, version } = resource
    try {
      await this.#client.create(resource, namespace, {
        apiVersion: `${group}/${version}`,
        kind,
        metadata: { namespace, name },
        spec: { name: dnsName },
      })
    } catch (error) {
      if (!isAlreadyThere(error)) throw error
      const ref = { resource, namespace, name }
      const found = await this.#client.get(ref)
      if (found === undefined) throw error
      return found
    }
    this.#count('create')
    this.#chosen.set(dnsName, name)
    this.#env.log.info(
      `egressfirewall: created ${kind} ${namespace}/${name}: ${dnsName}`,
      'egressfirewall-created',
    )
    return undefined
  }

  async #delete(object: ApiObject): Promise<void> {
    if (!this.#env.mayWrite()) return
    const { namespace, nameKind } = this.#settings
    const { kind, resource } = nameKind
    const [name, uid] = [textOf(object.metadata, 'name'), textOf(object.metadata, 'uid')]
    const ref = { resource, namespace, name }
    if (!(await this.#client.delete(ref, { uid }))) return
    this.#count('delete')
    const dnsName = dnsNameOf(object)
    this.#env.log.info(
      `egressfirewall: deleted ${kind} ${namespace}/${name}: ${dnsName}`,
      'egressfirewall-deleted',
    )
  }
}

/** `to.dnsName` of each rule; '' = a rule without one. */
function ruleNamesOf(firewall: ApiObject): readonly string[] {
  return itemsOf(mappingOf(firewall, 'spec'), 'egress').map((rule) => textOf(rule.to, 'dnsName'))
}

/** Keeps the names alone, at their places. */
function trimFirewall(firewall: ApiObject): ApiObject {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadataOf(firewall)
  const egress = ruleNamesOf(firewall).map((dnsName) => ({ to: { dnsName } }))
  return { metadata: { namespace, name, uid, resourceVersion }, spec: { egress } }
}

/** Leaves out the status, which changes with each lookup. */
function trimResolver(object: ApiObject): ApiObject {
  const { metadata = {}, spec = {} } = object
  return { metadata, spec }
}
