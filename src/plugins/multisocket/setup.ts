import { availableParallelism } from 'node:os'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { Directive } from '../../plugin/directive.ts'

const SOCKETS_MAX = 1024

/** `multisocket [NUM_SOCKETS]`: how many sockets, and threads, serve each address of the block. */
export const multisocket: Directive = {
  name: 'multisocket',
  setup(c) {
    for (let i = 0; nextOnce(c.dispenser, i); i++) c.block.sockets = scanSockets(c.dispenser)
    return {}
  },
}

function scanSockets(d: Dispenser): number {
  const args = d.remainingArgs()
  const text = args[0]
  if (text === undefined) return availableParallelism()
  if (args.length > 1) throw d.argError()
  if (!/^[+-]?\d{1,9}$/.test(text)) throw d.error(`invalid num sockets: ${JSON.stringify(text)}`)
  const sockets = Number(text)
  if (sockets < 1) throw d.error(`num sockets can not be zero or negative: ${sockets}`)
  if (sockets > SOCKETS_MAX) {
    throw d.error(`num sockets exceeds maximum (${SOCKETS_MAX}): ${sockets}`)
  }
  return sockets
}
