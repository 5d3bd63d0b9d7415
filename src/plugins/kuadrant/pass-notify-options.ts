import { missingKey, scanKeyName } from '../../arguments/key-name.ts'
import { InputError, type Position } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { printHostPort } from '../../dns/host-port.ts'
import { type Cidr, scanCidr } from '../../dns/text/address.ts'
import { type PeerAddress, scanPeerAddress } from '../../peering/peer-address.ts'
import type { BlockConfig } from '../../plugin/directive.ts'

/** Maximum of operators that one block passes NOTIFYs on to. */
const TARGETS_MAX = 8

/** Options of a block for passing on NOTIFYs. */
export interface PassOptions {
  /** The operators; empty = NOTIFYs are not passed on. */
  readonly targets: readonly PeerAddress[]
  /** Networks whose NOTIFYs are passed on, in addition to those with a signature that `tsig` verified. */
  readonly from: readonly Cidr[]
  /** Key that signs our NOTIFYs; undefined = they are not signed. */
  readonly keyName: Uint8Array | undefined
  readonly position: Position | undefined
}

export const NO_PASSING: PassOptions = {
  targets: [],
  from: [],
  keyName: undefined,
  position: undefined,
}

/**
 * Reads `pass-notify ADDR...`, `pass-notify-from CIDR...` and `pass-notify-key NAME`. Returns
 * undefined for another property.
 */
export function scanPassProperty(d: Dispenser, before: PassOptions): PassOptions | undefined {
  const position = before.position ?? d.position()
  switch (d.value()) {
    case 'pass-notify':
      return { ...before, position, targets: scanTargets(d, before.targets) }
    case 'pass-notify-from':
      return { ...before, position, from: [...before.from, ...scanNetworks(d)] }
    case 'pass-notify-key':
      if (before.keyName !== undefined) throw d.error('pass-notify-key is given twice')
      return { ...before, position, keyName: scanKeyName(d) }
    default:
      return undefined
  }
}

/** Throws InputError if the properties do not fit together. `isLocal`: the block serves the zone kdrnt. */
export function checkPassing(d: Dispenser, options: PassOptions, isLocal: boolean): void {
  if (options.position === undefined) return
  if (options.targets.length === 0) {
    throw d.error('say whom NOTIFYs are passed on to: `pass-notify ADDR...`')
  }
  if (isLocal) return
  throw d.error('pass-notify is about the zone kdrnt: write it into the block that serves that')
}

/** Returns the faults that are known only when all directives of the block are known. */
export function findPassFaults(
  { from, keyName, position }: PassOptions,
  block: BlockConfig,
): readonly InputError[] {
  const fault = (message: string): InputError => new InputError(position, message)
  const faults = [...missingKey(keyName, block, fault)]
  if (from.length === 0 && !block.directives.includes('tsig')) {
    const cure = 'write `pass-notify-from CIDR...`, or have them signed, with the directive tsig'
    faults.push(fault(`nobody's NOTIFYs would be passed on: ${cure}`))
  }
  return faults
}

function scanTargets(d: Dispenser, before: readonly PeerAddress[]): readonly PeerAddress[] {
  const args = d.remainingArgs()
  if (args.length === 0) throw d.argError()
  const targets = [...before]
  for (const text of args) {
    const target = scanPeerAddress(text)
    if (typeof target === 'string') throw d.error(`pass-notify: ${target}`)
    const isKnown = targets.some((other) => printHostPort(other) === printHostPort(target))
    if (isKnown) throw d.error(`pass-notify ${text} is there twice; leave one`)
    targets.push(target)
  }
  if (targets.length > TARGETS_MAX)
    throw d.error(`pass-notify takes up to ${TARGETS_MAX} addresses`)
  return targets
}

function scanNetworks(d: Dispenser): readonly Cidr[] {
  const args = d.remainingArgs()
  if (args.length === 0) throw d.argError()
  return args.map((text) => {
    const cidr = scanCidr(text)
    if (cidr === undefined)
      throw d.error(`pass-notify-from: not a network, as 192.0.2.0/24: ${text}`)
    return cidr
  })
}
