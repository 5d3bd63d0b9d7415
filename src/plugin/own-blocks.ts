import { InputError, type Position } from '../base/errors.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { printName } from '../dns/name/name.ts'
import type { SetupContext } from './directive.ts'

/**
 * Finds servers whose queries for the zones come back to the same server block. `what`: the line that names them, such
 * as `forward .`.
 */
export async function findLoops(
  { block, findOwnBlock }: Pick<SetupContext, 'findOwnBlock' | 'block'>,
  servers: Iterable<HostPort>,
  zones: readonly Uint8Array[],
  { what, position }: { readonly what: string; readonly position: Position },
): Promise<InputError[]> {
  // The directive rewrite can send queries for other names.
  if (block.directives.includes('rewrite')) return []
  const loops: InputError[] = []
  for (const server of servers) {
    const owners = await Promise.all(zones.map((zone) => findOwnBlock(server, zone)))
    const zone = zones[owners.indexOf(block)]
    if (zone === undefined) continue
    const address = printHostPort(server)
    const message = `${what}: ${address} is this server, so queries for ${printName(zone)} come back to this block; name another server`
    loops.push(new InputError(position, message))
  }
  return loops
}
