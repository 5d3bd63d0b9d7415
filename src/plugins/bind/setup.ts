import { networkInterfaces } from 'node:os'
import { InputError } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive } from '../../plugin/directive.ts'
import { type Interfaces, listAddresses } from './bind.ts'

/** `bind ADDRESS|IFACE... { except ADDRESS|IFACE... }`: the addresses on which the block listens. */
export const bind: Directive = {
  name: 'bind',
  setup(c) {
    const interfaces = networkInterfaces()
    while (c.dispenser.next()) {
      const position = c.dispenser.position()
      for (const address of scanBind(c.dispenser, interfaces)) {
        if (c.block.listenHosts.includes(address)) {
          throw new InputError(position, `bind has ${address} twice in this block; remove one`)
        }
        c.block.listenHosts.push(address)
      }
    }
    // An empty list would mean every address.
    if (c.block.listenHosts.length === 0) {
      throw c.dispenser.error('"except" removes all addresses; leave one, or remove the block')
    }
    return {}
  },
}

/** The addresses of one `bind`. Its `except` does not affect other `bind`s. */
function scanBind(d: Dispenser, interfaces: Interfaces): string[] {
  const wanted = d.remainingArgs()
  if (wanted.length === 0) throw d.error('at least one address or interface name is expected')
  const excepted: string[] = []
  d.eachProperty(() => {
    if (d.value() !== 'except') throw d.error(`invalid option ${JSON.stringify(d.value())}`)
    const args = d.remainingArgs()
    if (args.length === 0) {
      throw d.error('at least one address or interface must be given to except subdirective')
    }
    excepted.push(...args)
  })
  const without = new Set(scanAddresses(d, excepted, interfaces))
  return scanAddresses(d, wanted, interfaces).filter((address) => !without.has(address))
}

function scanAddresses(d: Dispenser, args: readonly string[], interfaces: Interfaces): string[] {
  return args.flatMap((arg) => {
    const addresses = listAddresses(arg, interfaces)
    if (addresses === undefined) {
      throw d.error(`not a valid IP address or interface name: ${JSON.stringify(arg)}`)
    }
    return addresses
  })
}
