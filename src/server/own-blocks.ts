import { networkInterfaces } from 'node:os'
import { addressOfHost, type HostPort } from '../dns/host-port.ts'
import { NameBuffer } from '../dns/name/hashed-name.ts'
import type { BlockConfig } from '../plugin/directive.ts'
import type { ListenPlan, LoadedBlock } from './listen-plan.ts'
import { RoutingTable } from './routing.ts'

const EVERY = new Set(['', '0.0.0.0', '::'])
/** Loopback addresses at which others answer, although this server listens on all: Docker and systemd-resolved. */
const FOREIGN = new Set(['127.0.0.11', '127.0.0.53', '127.0.0.54'])
/** Service addresses of kube-proxy, which lead to Pods. */
const FOREIGN_INTERFACE = /^kube-ipvs/

/** See `SetupContext`. */
export function findOwnBlock(
  plans: readonly ListenPlan[],
  blocks: readonly LoadedBlock[],
  { host, port }: HostPort,
  name: Uint8Array,
  interfaces: () => ReturnType<typeof networkInterfaces> = networkInterfaces,
): BlockConfig | undefined {
  const address = addressOfHost(host)
  const ofPort = plans.filter((plan) => plan.port === port)
  const plan =
    ofPort.find((one) => !EVERY.has(one.host) && addressOfHost(one.host) === address) ??
    ofPort.find((one) => isCovered(address, one.host) && isOwn(address, interfaces()))
  if (plan === undefined) return undefined
  const buffer = new NameBuffer()
  buffer.set(name, 0, name.length)
  const found = new RoutingTable(plan.blocks).findUnconditional(buffer)
  return blocks.find(({ chain }) => chain === found?.chain)?.config
}

/** True if `host` stands for all addresses, and a socket on it gets packets to `address`. */
function isCovered(address: string, host: string): boolean {
  if (!EVERY.has(host)) return false
  return host === '' || host.includes(':') === address.includes(':')
}

/** True if packets to the address stay on this machine, and a socket on all addresses gets them. */
function isOwn(address: string, interfaces: ReturnType<typeof networkInterfaces>): boolean {
  if (FOREIGN.has(address)) return false
  if (EVERY.has(address) || /^127\./.test(address) || address === '::1') return true
  return Object.entries(interfaces).some(([name, list = []]) => {
    return !FOREIGN_INTERFACE.test(name) && list.some((one) => one.address === address)
  })
}
