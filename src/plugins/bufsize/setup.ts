import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'

/** The size that most paths transport without fragments (DNS flag day 2020). */
const DEFAULT_OCTETS = 1232
const OCTETS_MIN = 512
const OCTETS_MAX = 4096

/** `bufsize [SIZE]`: the most octets of a UDP reply. */
export const bufsize: Directive = {
  name: 'bufsize',
  setup(c) {
    while (c.dispenser.next()) c.block.bufsizeOctets = scanSize(c.dispenser)
    return {}
  },
}

function scanSize(d: Dispenser): number {
  const args = d.remainingArgs()
  d.noBlock()
  if (args.length === 0) return DEFAULT_OCTETS
  const octets = args.length === 1 && /^\+?\d{1,5}$/.test(args[0]!) ? Number(args[0]) : 0
  if (octets < OCTETS_MIN || octets > OCTETS_MAX) throw d.argError()
  return octets
}
