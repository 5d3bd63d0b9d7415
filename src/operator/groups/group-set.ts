import type { ResourceLease, ResourceRegistry } from '../../base/resource-registry.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { Timers } from '../../base/timers.ts'
import { type HostPort, printHostPort } from '../../dns/host-port.ts'
import { acquireGroupLookup, readSystemServers } from '../../health/drain/acquire-groups.ts'
import { isGroup } from '../../health/drain/active-groups.ts'
import type { GroupServer } from '../../health/drain/ask-groups.ts'
import type { GroupLookup } from '../../health/drain/group-lookup.ts'
import { resolvePeer } from '../../peering/peer-address.ts'
import { scanHost } from '../../records/validate/names.ts'
import type { Publishing } from '../plan/decide.ts'
import { keyIdOf } from '../provider/key-id.ts'
import type { Provider } from '../provider/provider-secret.ts'
import { type Membership, scanActiveGroupsField } from './membership.ts'

/** The active groups of the zones of records. */
export interface GroupDirectory {
  /** Group of this cluster; '' = none. */
  readonly ownGroup: string
  /**
   * Returns the membership of a record whose cluster belongs to `group`; undefined = the group is ''
   * or invalid. `pending`: the first lookup has not ended. The record `key` is reconciled when the
   * result changes.
   */
  membershipOf(
    key: string,
    group: string,
    publishing: Publishing,
  ): Membership | 'pending' | undefined
  /** The record needs no groups any more. */
  forget(key: string): void
}

export const NO_GROUPS: GroupDirectory = {
  ownGroup: '',
  membershipOf: () => undefined,
  forget: () => {},
}

interface GroupSetParts {
  readonly ownGroup: string
  /** Shared by all sets of a leader session. */
  readonly resources: ResourceRegistry
  readonly timers: Timers
  readonly log: Logger
  /** The active groups of that record may have changed. */
  readonly onEvent: (key: string) => void
  /** Returns the servers to ask after the nameservers of the provider. */
  readonly systemServers?: () => readonly HostPort[]
}

/** The lookup that a record uses. */
interface Use {
  readonly id: string
  readonly lease: ResourceLease<GroupLookup>
  readonly unsubscribe: () => void
}

/** The lookups of active groups that the records of one cluster need. */
export class GroupSet implements GroupDirectory {
  readonly ownGroup: string
  readonly #parts: GroupSetParts
  /** By record key. */
  readonly #uses = new Map<string, Use>()

  constructor(parts: GroupSetParts) {
    this.#parts = parts
    this.ownGroup = parts.ownGroup
  }

  membershipOf(
    key: string,
    group: string,
    { record, zone, provider }: Publishing,
  ): Membership | 'pending' | undefined {
    if (!isGroup(group)) {
      this.forget(key)
      return undefined
    }
    const lookup = this.#lookupFor(key, zone, provider)
    const stored = scanActiveGroupsField(record.status.activeGroups)
    if (stored !== undefined) lookup.recall(stored)
    const { groups: active, isSettled } = lookup
    return active === undefined && !isSettled ? 'pending' : { group, active }
  }

  forget(key: string): void {
    const use = this.#uses.get(key)
    this.#uses.delete(key)
    use?.unsubscribe()
    use?.lease.release()
  }

  close(): void {
    for (const key of [...this.#uses.keys()]) this.forget(key)
  }

  #lookupFor(key: string, zone: string, provider: Provider): GroupLookup {
    const { resources, timers, log, onEvent } = this.#parts
    const { nameservers, tsigKey } = provider
    const keyId = tsigKey === undefined ? '' : keyIdOf(tsigKey)
    const servers = `${nameservers.map(printHostPort).join(' ')} ${keyId}`
    const id = `${zone} ${servers}`
    const known = this.#uses.get(key)
    if (known?.id === id) return known.lease.item
    const options = {
      zone: scanHost(zone)!,
      servers: () => this.#serversOf(provider),
      timers,
      log,
    }
    const lease = acquireGroupLookup(options, servers, resources)
    this.forget(key)
    const unsubscribe = lease.item.subscribe(() => onEvent(key))
    this.#uses.set(key, { id, lease, unsubscribe })
    void lease.item.start()
    return lease.item
  }

  /** As Kuadrant's operator does, asks the resolvers of the system last. */
  async #serversOf({ nameservers, tsigKey: key }: Provider): Promise<readonly GroupServer[]> {
    const found = await Promise.all(nameservers.map((nameserver) => resolvePeer(nameserver)))
    const { systemServers = readServers } = this.#parts
    return [...found.flat().map((server) => ({ ...server, key })), ...systemServers()]
  }
}

function readServers(): readonly HostPort[] {
  const found = readSystemServers()
  return typeof found === 'string' ? [] : found
}
