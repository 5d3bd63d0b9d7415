import type { Dispenser } from '../../corefile/dispenser.ts'
import { embeddedIPv4, isInPrefix } from '../../dns/nat64.ts'
import { type Cidr, scanAddress, scanCidr } from '../../dns/text/address.ts'
import type { Directive } from '../../plugin/directive.ts'
import { exportTranslated } from '../../plugin/translated-count.ts'
import { scanTranslationPrefix } from '../../plugin/translation-prefix.ts'
import { type IPv4Of, Siit } from './siit.ts'

/** The well-known prefix (RFC 6052 section 2.1). */
const PREFIX_DEFAULT = scanCidr('64:ff9b::/96')!
const IPV6_OCTETS = 16

interface SiitOptions {
  prefix: Cidr
  /** Explicit address mappings (RFC 7757): IPv4 by the octets of the IPv6 address, in hexadecimal. */
  readonly mappings: Map<string, Uint8Array>
}

/** `siit { … }`: A records from AAAA records, for servers that have only IPv6. */
export const siit: Directive = {
  name: 'siit',
  setup(c) {
    const ipv4Of = translator(scanOptions(c.dispenser))
    const slots = c.counters()
    return [
      { handler: (next) => new Siit(next, ipv4Of, slots), changesAnswers: true },
      exportTranslated(c, slots, 'siit'),
    ]
  },
}

function scanOptions(d: Dispenser): SiitOptions {
  const options: SiitOptions = { prefix: PREFIX_DEFAULT, mappings: new Map() }
  while (d.next()) {
    d.noArgs()
    d.eachProperty(() => {
      const property = d.value()
      if (property === 'ipv6_prefix') options.prefix = scanTranslationPrefix(d, d.onlyArg())
      else if (property === 'eam') scanMapping(d, options.mappings)
      else throw d.unknownProperty(property, ['ipv6_prefix', 'eam'])
    })
  }
  return options
}

function scanMapping(d: Dispenser, mappings: SiitOptions['mappings']): void {
  const [first = '', second = ''] = d.remainingArgs(2, 2)
  const ipv4 = scanAddress(first)
  if (ipv4?.family !== 1) throw d.error(`eam: ${first} is not an IPv4 address`)
  const ipv6 = scanAddress(second)
  if (ipv6?.family !== 2) throw d.error(`eam: ${second} is not an IPv6 address`)
  mappings.set(keyOf(ipv6.bytes, 0), ipv4.bytes)
}

function translator({ prefix, mappings }: SiitOptions): IPv4Of {
  return (from, offset) => {
    const mapped = mappings.size === 0 ? undefined : mappings.get(keyOf(from, offset))
    if (mapped !== undefined) return mapped
    const address = from.subarray(offset, offset + IPV6_OCTETS)
    return isInPrefix(prefix, address) ? embeddedIPv4(prefix, address) : undefined
  }
}

function keyOf(from: Uint8Array, offset: number): string {
  return Buffer.from(from.subarray(offset, offset + IPV6_OCTETS)).toString('hex')
}
