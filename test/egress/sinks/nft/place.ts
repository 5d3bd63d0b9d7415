import type { Test } from 'tap'
import { systemClock } from '../../../../src/base/clock.ts'
import { scanCidr } from '../../../../src/dns/text/address.ts'
import type { Client } from '../../../../src/egress/agent/client.ts'
import type { TierList } from '../../../../src/egress/rules/rule.ts'
import type { Allowance } from '../../../../src/egress/sinks/enforcer.ts'
import type { NftEnforcer } from '../../../../src/egress/sinks/nft/nft-enforcer.ts'
import { startNftEnforcer } from '../../../../src/egress/sinks/nft/start-enforcer.ts'
import { HostNetwork, type NetworkHost } from '../../../support/host-network.ts'
import { FakeTimers } from '../../../support/setup.ts'
import { portsOf, rule } from '../../egress-rules.ts'

export const TABLE = 'egress'
/** Only what names allow. */
export const CLOSED: readonly TierList[] = [[{ rules: [], otherwise: 'deny' }]]
/** Also this network. */
export const OPEN_NETWORK: readonly TierList[] = [
  [{ rules: [rule('accept', { networks: ['203.0.113.0/24'] })], otherwise: 'deny' }],
]

/** A client `p<number>` with the addresses `10.1.0.<number>` and `fd01::<number>`. */
export function client(number: number, lists = CLOSED, uid = 1): Client {
  return {
    id: `default/p${number}/${uid}`,
    addresses: [`10.1.0.${number}`, `fd01::${number}`],
    rules: { lists, dns: undefined },
  }
}

/** What a pair is allowed for a minute: all ports, or `tcp 80` and so on. */
export function allowed(...ports: readonly string[]): readonly Allowance[] {
  const endMs = systemClock.monotonic() + 60_000
  if (ports.length === 0) return [{ ports: undefined, endMs }]
  return ports.map((text) => ({ ports: portsOf(text), endMs }))
}

export interface TestEnforcer {
  readonly enforcer: NftEnforcer
  readonly timers: FakeTimers
  readonly faults: string[]
  readonly repairs: string[]
}

/** A host of its own whose nftables a test writes, with real time. */
export class Place {
  readonly host: NetworkHost
  readonly command: readonly string[]

  private constructor(host: NetworkHost, command: readonly string[]) {
    this.host = host
    this.command = command
  }

  static async create(t: Test): Promise<Place> {
    const network = await HostNetwork.create(t)
    const host = await network.addHost('node', [])
    return new Place(host, ['ip', 'netns', 'exec', network.nameOf('node'), 'nft'])
  }

  /** The end of the test closes the enforcer. */
  enforcer(t: Test, elementsMax = 100_000, command = this.command): TestEnforcer {
    const timers = new FakeTimers()
    const faults: string[] = []
    const repairs: string[] = []
    const enforcer = startNftEnforcer({
      table: TABLE,
      elementsMax,
      clusterNetworks: ['10.96.0.0/12', '10.100.0.0/16', 'fd00::/64'].map(
        (text) => scanCidr(text)!,
      ),
      dnsPort: 5300,
      dnsAddresses: [],
      cutsConnections: false,
      isDenied: (address) => address === '169.254.169.254',
      command,
      clock: systemClock,
      timers,
      onFault: (fault) => faults.push(fault),
      onRepair: (what) => repairs.push(what),
    })
    t.teardown(() => enforcer.close())
    return { enforcer, timers, faults, repairs }
  }

  nft(...words: readonly string[]): Promise<string> {
    return this.host.run('nft', ...words)
  }

  /** Elements of the allow sets in the kernel, without timeouts, sorted. */
  async elements(): Promise<readonly string[]> {
    const found: string[] = []
    const listing = await this.nft('list', 'table', 'inet', TABLE)
    const sets = listing.matchAll(/set (?:any|port|range)\d \{.*?\n\t\}/gs)
    for (const [set] of sets) {
      const body = /elements = \{([^}]*)\}/.exec(set)?.[1] ?? ''
      for (const one of body.split(',')) found.push(one.replace(/timeout.*/s, '').trim())
    }
    return found.filter((text) => text !== '').sort()
  }

  /** Addresses of the clients in the kernel, sorted. */
  async clients(): Promise<readonly string[]> {
    const found: string[] = []
    for (const map of ['profiles4', 'profiles6']) {
      const listing = await this.nft('list', 'map', 'inet', TABLE, map)
      for (const [, address] of listing.matchAll(/(\S+) comment "[^"]*" : goto/g)) {
        found.push(address!)
      }
    }
    return found.sort()
  }
}
