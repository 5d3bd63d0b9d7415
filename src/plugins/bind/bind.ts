import type { NetworkInterfaceInfo } from 'node:os'
import { printAddress, scanAddress } from '../../dns/text/address.ts'

/** As `os.networkInterfaces()` returns them. */
export type Interfaces = Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>

/**
 * The addresses that `arg` names: itself, in canonical form, or those of the interface with that
 * name. Link-local IPv6 addresses have their zone (`fe80::1%eth0`), because binding them requires
 * it. Returns undefined if `arg` is neither.
 */
export function listAddresses(arg: string, interfaces: Interfaces): string[] | undefined {
  const ofInterface = Object.hasOwn(interfaces, arg) ? interfaces[arg] : undefined
  if (ofInterface !== undefined) {
    return ofInterface.map((info) => (isLinkLocal(info) ? `${info.address}%${arg}` : info.address))
  }
  const percent = arg.indexOf('%')
  const address = scanAddress(percent < 0 ? arg : arg.slice(0, percent))
  if (address === undefined) return undefined
  const zone = percent < 0 ? '' : arg.slice(percent)
  return [printAddress(address.bytes, address.family) + zone]
}

function isLinkLocal(info: NetworkInterfaceInfo): boolean {
  return info.family === 'IPv6' && /^fe[89ab]/i.test(info.address)
}
