import { FaultLog } from '../../../base/telemetry/fault-log.ts'
import { AddressRules, DENIAL_TEXTS, type Denial } from '../../../egress/learned/address-rules.ts'
import { scanSelector } from '../../../egress/selectors/scan-selector.ts'
import { monitoredRows } from '../../../egress/sinks/ovn/address-set-row.ts'
import {
  type AddressSetDatabase,
  AddressSetSink,
} from '../../../egress/sinks/ovn/address-set-sink.ts'
import { grantsOfPublished } from '../../../egress/sinks/ovn/published-grants.ts'
import { SinkFeed, type SinkUpdate } from '../../../egress/sinks/sink-feed.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import type { EventDetails } from '../../../kube/event-series.ts'
import { Informer } from '../../../kube/informer.ts'
import type { ListWatch } from '../../../kube/list-watch.ts'
import { keyOf } from '../../../kube/object-key.ts'
import { OvsdbClient } from '../../../ovsdb/client.ts'
import { OvsdbError } from '../../../ovsdb/connection.ts'
import type { ControllerEnv, ControllerSession } from '../../controller.ts'
import { itemsOf, mappingOf, metadataOf, textsOf } from '../../record/fields.ts'
import { chooseObject, dnsNameOf, invalidName, NameObjects, subjectOf } from '../name-objects.ts'
import type { NameKind } from '../resources.ts'
import type { OvnMetrics } from './ovn-metrics.ts'
import type { OvnSettings } from './ovn-settings.ts'

const DATABASE = 'OVN_Northbound'

/**
 * Gives each DNSNameResolver an address set in OVN Northbound for each address family:
 *
 *     DNSNameResolvers ─▶ one per DNS name ─▶ feed ─▶ sink ─▶ transaction
 *                                               ▲              │
 *                                               └── a set that another client changed
 *
 * Sets without a DNSNameResolver are deleted once these were listed.
 */
export class OvnSession implements ControllerSession {
  readonly #env: ControllerEnv
  readonly #metrics: OvnMetrics
  readonly #nameKind: NameKind
  readonly #rules: AddressRules
  readonly #objects = new NameObjects()
  /** Name of the object that each DNS name has. */
  readonly #chosen = new Map<string, string>()
  /** By DNS name. */
  readonly #faults: FaultLog
  /** Of what is left out: invalid names by object, denied addresses by DNS name and address. */
  readonly #omissions: FaultLog
  /** Addresses that no set has, by DNS name. */
  readonly #denied = new Map<string, ReadonlyMap<string, Denial>>()
  /** What Events reported, by DNS name. */
  readonly #reported = new Map<string, string>()
  readonly #informer: Informer
  readonly #client: OvsdbClient
  readonly #sink: AddressSetSink
  readonly #feed: SinkFeed
  #feedFault = ''
  #sweepFault = ''
  #isClosed = false

  constructor(env: ControllerEnv, settings: OvnSettings, metrics: OvnMetrics) {
    const { owner, families, namespace } = settings
    this.#env = env
    this.#metrics = metrics
    this.#nameKind = settings.nameKind
    this.#rules = new AddressRules(settings.clusterNetworks, settings.allowedNetworks)
    this.#faults = new FaultLog(env.log, env.clock)
    // Any number of denied addresses must not hide a fault.
    this.#omissions = new FaultLog(env.log, env.clock)
    this.#informer = new Informer({
      ...env,
      resource: settings.nameKind.resource,
      namespaces: [namespace],
      labelSelector: '',
      trim: trimResolver,
    })
    this.#client = new OvsdbClient({
      ...env,
      remotes: settings.remotes,
      tls: settings.tls,
      database: DATABASE,
      monitored: monitoredRows(owner),
      onRow: (before, after) => this.#sink.onRow(before, after),
      onSync: () => this.#sink.onSync(),
    })
    this.#sink = new AddressSetSink({
      ...env,
      database: this.#database(),
      owner,
      families,
      onLoss: (selector) => {
        metrics.countRepair()
        this.#feed.resync(selector)
      },
      onSweep: (fault) => {
        if (fault !== '' && fault !== this.#sweepFault)
          env.log.warning(`ovn: sweep: ${fault}`, 'ovn-sweep-failed')
        this.#sweepFault = fault
      },
    })
    this.#feed = new SinkFeed({
      ...env,
      apply: (update) => this.#apply(update),
      onFault: (fault) => {
        this.#feedFault = fault
      },
    })
    this.#client.start()
    void this.#start()
  }

  get watches(): readonly ListWatch[] {
    return this.#informer.watches
  }

  get reason(): string {
    const { reason } = this.#client
    const database = reason === '' ? '' : `OVN Northbound: ${reason}`
    return this.#informer.reason || database || this.#feedFault || this.#sweepFault
  }

  get isConnected(): boolean {
    return !this.#isClosed && this.#client.reason === ''
  }

  /** DNS names whose last change is not committed. */
  get pending(): number {
    return this.#isClosed ? 0 : this.#feed.pending
  }

  get addressSets(): number {
    return this.#isClosed ? 0 : this.#sink.size
  }

  /** Address sets that only ACLs use. */
  get unclaimed(): number {
    return this.#isClosed ? 0 : this.#sink.unclaimed
  }

  /** Addresses that are never granted. */
  get denied(): number {
    if (this.#isClosed) return 0
    return [...this.#denied.values()].reduce((sum, { size }) => sum + size, 0)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#informer.close()
    this.#feed.close()
    this.#sink.close()
    this.#client.close()
  }

  async #start(): Promise<void> {
    this.#informer.subscribe({
      onAdd: (key, object) => this.#put(key, object),
      onUpdate: (key, object, before) => {
        this.#objects.remove(before)
        this.#put(key, object)
        if (dnsNameOf(before) !== dnsNameOf(object)) this.#update(dnsNameOf(before))
      },
      onDelete: (key, before) => {
        this.#objects.remove(before)
        this.#omissions.clear(key)
        this.#update(dnsNameOf(before))
      },
    })
    this.#informer.start()
    await this.#informer.synced()
    if (!this.#isClosed) this.#sink.beginSweeps()
  }

  #put(key: string, object: ApiObject): void {
    this.#objects.put(object)
    const dnsName = dnsNameOf(object)
    const selector = scanSelector(dnsName, 'openshift')
    if (typeof selector !== 'string') this.#omissions.clear(key)
    else this.#reportOmission(key, object, invalidName(selector))
    this.#update(dnsName)
  }

  /** Feeds the addresses of the object that a DNS name has. */
  #update(dnsName: string): void {
    const selector = scanSelector(dnsName, 'openshift')
    if (typeof selector === 'string') return
    const objects = this.#objects.of(dnsName)
    const object = chooseObject(objects, this.#chosen.get(dnsName) ?? '') ?? objects[0]
    if (object === undefined) {
      this.#chosen.delete(dnsName)
      this.#faults.clear(dnsName)
      this.#reported.delete(dnsName)
      this.#forgetDenied(dnsName, new Map())
      this.#feed.remove(selector)
      return
    }
    this.#chosen.set(dnsName, textOf(object.metadata, 'name'))
    const { addresses, denied } = grantsOfPublished(publishedNames(object), this.#rules)
    this.#forgetDenied(dnsName, denied)
    this.#reportDenied(object, dnsName, denied)
    this.#feed.set(selector, addresses)
  }

  #forgetDenied(dnsName: string, next: ReadonlyMap<string, Denial>): void {
    for (const address of this.#denied.get(dnsName)?.keys() ?? []) {
      if (!next.has(address)) this.#omissions.clear(`${dnsName} ${address}`)
    }
    if (next.size > 0) this.#denied.set(dnsName, next)
    else this.#denied.delete(dnsName)
  }

  /** Logs each address that is not granted, and records an Event of the object, once. */
  #reportDenied(object: ApiObject, dnsName: string, denied: ReadonlyMap<string, Denial>): void {
    for (const [address, denial] of denied) {
      const note = `${dnsName}: ${address} is ${DENIAL_TEXTS[denial]}`
      const details = { type: 'Warning', reason: 'AddressDenied', action: 'Publish' } as const
      this.#reportOmission(`${dnsName} ${address}`, object, { ...details, note })
    }
  }

  #reportOmission(thing: string, object: ApiObject, details: EventDetails): void {
    if (!this.#env.mayWrite()) return
    const line = `ovn: ${this.#nameKind.kind} ${keyOf(object)}: ${details.note}`
    if (this.#omissions.report(thing, line)) this.#record(object, details)
  }

  #record(object: ApiObject, details: EventDetails): void {
    const { resource, kind } = this.#nameKind
    this.#env.events.record(subjectOf(resource, kind, object), details)
  }

  async #apply(update: SinkUpdate): Promise<string> {
    const { clock } = this.#env
    const startMs = clock.monotonic()
    const fault = await this.#sink.apply(update)
    if (update.isGone || this.#isClosed) return fault
    if (fault === '') this.#metrics.observeCommit((clock.monotonic() - startMs) / 1000)
    this.#report(update.selector.text, fault)
    return fault
  }

  /** Logs a fault of a DNS name, and records an Event of its object, once. */
  #report(dnsName: string, fault: string): void {
    if (fault === '') {
      this.#faults.clear(dnsName)
      this.#reported.delete(dnsName)
      return
    }
    // A lost connection or lease concerns all names, and is reported elsewhere.
    if (this.#client.reason !== '' || !this.#env.mayWrite()) return
    if (this.#reported.get(dnsName) === fault) return
    const object = this.#objects
      .of(dnsName)
      .find(({ metadata }) => textOf(metadata, 'name') === this.#chosen.get(dnsName))
    if (object === undefined) return
    this.#reported.set(dnsName, fault)
    this.#faults.report(dnsName, `ovn: ${dnsName}: ${fault}; retrying`)
    const details = { type: 'Warning', reason: 'AddressSetFailed', action: 'Publish' } as const
    this.#record(object, { ...details, note: fault })
  }

  /** The database, for writes of a leader. */
  #database(): AddressSetDatabase {
    return {
      rows: () => this.#client.rows,
      transact: async (operations) => {
        if (!this.#env.mayWrite()) throw new OvsdbError('', 'this operator is not the leader')
        try {
          const results = await this.#client.transact(operations)
          this.#metrics.countTransaction('committed')
          return results
        } catch (error) {
          this.#metrics.countTransaction('failed')
          throw error
        }
      },
    }
  }
}

function publishedNames(object: ApiObject) {
  return itemsOf(mappingOf(object, 'status'), 'resolvedNames').map((name) => ({
    dnsName: textOf(name, 'dnsName'),
    ips: [
      ...itemsOf(name, 'resolvedAddresses').map((address) => textOf(address, 'ip')),
      // Of an EgressFirewallDNSName.
      ...textsOf(name, 'ips'),
    ],
  }))
}

/** Keeps the names and their addresses. TTLs and conditions change more often, and do not count. */
function trimResolver(object: ApiObject): ApiObject {
  const { managedFields: _, ...metadata } = metadataOf(object)
  const resolvedNames = publishedNames(object).map(({ dnsName, ips }) => ({
    dnsName,
    resolvedAddresses: ips.map((ip) => ({ ip })),
  }))
  return { metadata, spec: object.spec ?? {}, status: { resolvedNames } }
}
