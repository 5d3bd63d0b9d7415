import type { NetworkInterfaceInfo } from 'node:os'
import { parsePeerAddress } from '../../../transport/peer-address.ts'
import { proxyRulesOf } from '../../../transport/proxy/rules.ts'
import { TARGETS_MAX } from '../../../transport/udp/xdp/program.ts'
import { XDP, type XdpSettings } from '../../../transport/udp/xdp/settings.ts'
import type { LaneTarget } from '../../../transport/udp/xdp/targets.ts'
import type { BypassSite } from '../bypass.ts'
import type { DataXdp } from './serve-xdp.ts'

/** What an interface should do. */
export interface XdpRoutePlan {
  readonly settings: XdpSettings
  /** Threads that have a UDP socket of every site: the first ones. */
  readonly threads: number
  readonly targets: readonly LaneTarget[]
  readonly refused: DataXdp['refused']
  /** The lanes of a thread, in the order of the lane numbers of `targets`. */
  lanesOf(thread: number): DataXdp['lanes']
}

export interface XdpMachine {
  readonly name: string
  /** As `os.networkInterfaces`. */
  readonly interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>
  /** Returns the MAC address of the interface, as `os.networkInterfaces` prints it. */
  mac(): string
}

/**
 * The interfaces whose packets for the plan bypass its sockets. If one is listed twice, the first counts. None if
 * packets may have PROXY headers, which only the sockets read.
 */
export function interfacesOf({ configs }: BypassSite['plan']): XdpSettings[] {
  if (proxyRulesOf({ configs }) !== undefined) return []
  return configs.flatMap(({ shared }) => shared.find(XDP) ?? [])
}

/**
 * Returns what an interface should do for the sites that list it; undefined = nothing. Its addresses
 * stand for a wildcard. The first site decides the settings. Throws an Error if there are too many
 * targets.
 */
export function planRoutes(
  all: readonly BypassSite[],
  machine: XdpMachine,
): XdpRoutePlan | undefined {
  const { name } = machine
  const settingsOf = ({ plan }: BypassSite): XdpSettings | undefined =>
    interfacesOf(plan).find((one) => one.interfaceName === name)
  const sites = all.filter((site) => site.listener.sockets > 0 && settingsOf(site) !== undefined)
  const settings = sites[0] && settingsOf(sites[0])
  if (settings === undefined) return undefined
  const addresses = addressesOf(machine)
  const targets = listTargets(sites, machine, addresses)
  if (targets.length > TARGETS_MAX) {
    throw new Error(
      `${targets.length} addresses and ports, but at most ${TARGETS_MAX} are possible`,
    )
  }
  return {
    settings,
    threads: Math.min(...sites.map(({ listener }) => listener.sockets)),
    targets,
    refused: listRefused(addresses),
    lanesOf: (thread) =>
      sites.flatMap(({ listener }) => {
        const socket = listener.socketOf(thread)
        return socket === undefined ? [] : [{ address: socket.address, fd: socket.fd }]
      }),
  }
}

/** The system lists an IPv4 address that has a label (`eth0:1`) under that label. */
function addressesOf({ name, interfaces }: XdpMachine): NetworkInterfaceInfo[] {
  return Object.entries(interfaces).flatMap(([label, all = []]) => {
    return label === name || label.startsWith(`${name}:`) ? all : []
  })
}

/** A site with an address of its own comes before one with all addresses. */
function listTargets(
  sites: readonly BypassSite[],
  machine: XdpMachine,
  addresses: readonly NetworkInterfaceInfo[],
): LaneTarget[] {
  const { name } = machine
  const targets = new Map<string, LaneTarget>()
  const add = (host: string, port: number, lane: number): void => {
    const target = { ...parse(host), port, lane }
    const key = `${target.address.join()} ${target.family} ${port}`
    if (!isLoopback(target) && !targets.has(key)) targets.set(key, target)
  }
  const wildcards: (() => void)[] = []
  sites.forEach(({ listener }, lane) => {
    const { port } = listener
    const host = listener.socketOf(0)?.host ?? ''
    if (host === '::' || host === '0.0.0.0') {
      const own = addresses.filter(({ family }) => host === '::' || family === 'IPv4')
      wildcards.push(() => {
        for (const { address } of own) add(address, port, lane)
      })
    } else if ((host.split('%')[1] ?? name) === name) {
      if (!isElsewhere(host, machine, addresses)) add(host, port, lane)
    }
  })
  for (const addAll of wildcards) addAll()
  return [...targets.values()]
}

/**
 * Whether another interface with the same MAC address has the address `host`, and this one has not. For a
 * VLAN interface, the card may have removed the tag, which the reply needs.
 */
function isElsewhere(
  host: string,
  { interfaces, mac }: XdpMachine,
  addresses: readonly NetworkInterfaceInfo[],
): boolean {
  const isHost = ({ address }: NetworkInterfaceInfo): boolean => address === host
  if (addresses.some(isHost)) return false
  const others = Object.values(interfaces).flatMap((all = []) => all.filter(isHost))
  return others.some((other) => other.mac === mac())
}

/** Our own addresses and the broadcast addresses of our networks. A /31 has none (RFC 3021). */
function listRefused(addresses: readonly NetworkInterfaceInfo[]): DataXdp['refused'] {
  return addresses.flatMap((info) => {
    const own = parse(info.address)
    if (own.family !== 1) return [own]
    const mask = parse(info.netmask).address
    if ((mask[3]! & 3) !== 0) return [own]
    const broadcast = own.address.map((octet, i) => (i < 4 ? octet | (~mask[i]! & 0xff) : 0))
    return [own, { family: 1, address: broadcast }]
  })
}

function parse(host: string): { readonly family: number; readonly address: Uint8Array } {
  const address = new Uint8Array(16)
  const family = parsePeerAddress(host, address)
  return { family, address }
}

function isLoopback({ family, address }: LaneTarget): boolean {
  if (family === 1) return address[0] === 127
  return address[15] === 1 && address.subarray(0, 15).every((octet) => octet === 0)
}
