import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanCidr } from '../../dns/text/address.ts'
import type { Directive } from '../../plugin/directive.ts'
import { exportTranslated } from '../../plugin/translated-count.ts'
import {
  NAT64_PREFIX,
  scanTranslationPrefix as scanPrefix,
} from '../../plugin/translation-prefix.ts'
import { Dns64 } from './dns64.ts'

/** The well-known prefix (RFC 6052 section 2.1). */
const PREFIX_DEFAULT = scanCidr('64:ff9b::/96')!

/** `dns64 [PREFIX] { … }`: AAAA records from A records, for networks with NAT64. */
export const dns64: Directive = {
  name: 'dns64',
  setup(c) {
    const options = scanOptions(c.dispenser)
    c.block.shared.provide(NAT64_PREFIX, options.prefix)
    const slots = c.counters()
    return [
      { handler: (next) => new Dns64(next, options, slots), changesAnswers: true },
      exportTranslated(c, slots, 'dns64'),
    ]
  },
}

function scanOptions(d: Dispenser) {
  const options = { prefix: PREFIX_DEFAULT, translatesAll: false, allowsIPv4: false }
  while (d.next()) {
    const args = d.remainingArgs(0, 1)
    if (args.length === 1) options.prefix = scanPrefix(d, args[0]!)
    d.eachProperty(() => {
      switch (d.value()) {
        case 'prefix': {
          const text = d.onlyArg()
          options.prefix = scanPrefix(d, text)
          return
        }
        case 'translate_all':
          if (d.nextArg()) throw d.argError()
          options.translatesAll = true
          return
        case 'allow_ipv4':
          if (d.nextArg()) throw d.argError()
          options.allowsIPv4 = true
          return
        default:
          throw d.unknownProperty(d.value(), ['prefix', 'translate_all', 'allow_ipv4'])
      }
    })
  }
  return options
}
