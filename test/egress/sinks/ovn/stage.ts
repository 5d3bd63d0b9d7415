import type { Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { Random } from '../../../../src/base/random.ts'
import { createLogger } from '../../../../src/base/telemetry/log.ts'
import { systemTimers } from '../../../../src/base/timers.ts'
import { AddressRules } from '../../../../src/egress/learned/address-rules.ts'
import { scanSelector } from '../../../../src/egress/selectors/scan-selector.ts'
import type { Selector } from '../../../../src/egress/selectors/selector.ts'
import { monitoredRows } from '../../../../src/egress/sinks/ovn/address-set-row.ts'
import { AddressSetSink } from '../../../../src/egress/sinks/ovn/address-set-sink.ts'
import { grantsOfPublished } from '../../../../src/egress/sinks/ovn/published-grants.ts'
import { SinkFeed } from '../../../../src/egress/sinks/sink-feed.ts'
import { OvsdbClient } from '../../../../src/ovsdb/client.ts'
import { scanRemotes } from '../../../../src/ovsdb/remote.ts'
import { NorthboundServer } from '../../../support/ovsdb.ts'

const RULES = new AddressRules([], [])

/** A feed of address sets, and the server that has them. */
export class AddressSetStage {
  readonly server: NorthboundServer
  readonly client: OvsdbClient
  readonly sink: AddressSetSink
  readonly feed: SinkFeed
  readonly lines: string[] = []
  /** Faults of the feed and of sweeps. */
  readonly faults: string[] = []
  transactions = 0
  /** Rows that another client changed or deleted. */
  losses = 0

  constructor(t: Test, server: NorthboundServer, families: readonly (1 | 2)[] = [1, 2]) {
    this.server = server
    const [clock, timers, owner] = [systemClock, systemTimers, 'sextant']
    const env = {
      clock,
      timers,
      random: new Random(1),
      log: createLogger(
        '',
        (line) => this.lines.push(line),
        () => true,
      ),
    }
    this.client = new OvsdbClient({
      ...env,
      remotes: scanRemotes(server.remote)!,
      tls: undefined,
      database: 'OVN_Northbound',
      monitored: monitoredRows(owner),
      onRow: (before, after) => this.sink.onRow(before, after),
      onSync: () => this.sink.onSync(),
    })
    this.sink = new AddressSetSink({
      database: {
        rows: () => this.client.rows,
        transact: (operations) => {
          this.transactions++
          return this.client.transact(operations)
        },
      },
      owner,
      families,
      clock,
      timers,
      onLoss: (selector) => {
        this.losses++
        this.feed.resync(selector)
      },
      onSweep: (fault) => {
        if (fault !== '') this.faults.push(fault)
      },
    })
    const onFault = (fault: string): void => void this.faults.push(fault)
    this.feed = new SinkFeed({ ...env, apply: (update) => this.sink.apply(update), onFault })
    t.teardown(() => {
      this.feed.close()
      this.sink.close()
      this.client.close()
    })
    this.client.start()
  }

  static async start(t: Test): Promise<AddressSetStage> {
    return new AddressSetStage(t, await NorthboundServer.start(t))
  }

  set(dnsName: string, ...ips: string[]): void {
    this.feed.set(selectorOf(dnsName), grantsOfPublished([{ dnsName, ips }], RULES).addresses)
  }

  remove(dnsName: string): void {
    this.feed.remove(selectorOf(dnsName))
  }

  /** `NAME FAMILY: ADDRESSES` of each row in the database, of any owner. */
  async rows(): Promise<string[]> {
    const found = await this.stored()
    return found
      .map(({ dnsName, family, addresses }) => `${dnsName} ${family}: ${addresses}`)
      .sort()
  }

  /** The rows as Open vSwitch's own client reads them. */
  async stored() {
    const [result] = await this.server.transact({ op: 'select', table: 'Address_Set', where: [] })
    const { rows } = result as { rows: Readonly<Record<string, unknown>>[] }
    return rows.map(({ name, addresses, external_ids }) => {
      const [, pairs] = external_ids as [string, [string, string][]]
      const ids = Object.fromEntries(pairs)
      const set = Array.isArray(addresses) ? addresses[1] : [addresses]
      const dnsName = ids['k8s.ovn.org/name']
      return {
        name: String(name),
        dnsName,
        family: ids['ip-family'],
        addresses: set.sort().join(' '),
      }
    })
  }
}

export function selectorOf(dnsName: string): Selector {
  const selector = scanSelector(dnsName, 'openshift')
  if (typeof selector === 'string') throw new Error(selector)
  return selector
}

/** Makes an ACL with a match, in a port group of that name. */
export function insertAcl(group: string, match: string): object[] {
  const row = { priority: 10_000, direction: 'from-lport', match, action: 'allow' }
  const acls = ['named-uuid', 'acl']
  return [
    { op: 'insert', table: 'ACL', 'uuid-name': 'acl', row },
    { op: 'insert', table: 'Port_Group', row: { name: group, acls } },
  ]
}

export function deleteAcls(group: string): object {
  return { op: 'delete', table: 'Port_Group', where: [['name', '==', group]] }
}
