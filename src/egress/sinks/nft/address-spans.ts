import {
  type AddressFamily,
  type Cidr,
  maskAddress,
  printAddress,
} from '../../../dns/text/address.ts'
import type { NetworkPeer } from '../../rules/rule.ts'

/** Addresses of one family, both ends included. */
interface AddressSpan {
  readonly first: bigint
  readonly last: bigint
}

/**
 * Returns the addresses of the peers as nft writes intervals: `192.0.2.0/24`, `192.0.2.1` or
 * `192.0.2.1-192.0.2.9`. They are sorted and have no address twice, as the sets of the kernel need it.
 * `all`: every address of the family.
 */
export function printPeers(
  peers: readonly NetworkPeer[],
  family: AddressFamily,
): readonly string[] | 'all' {
  const spans = join(
    peers
      .filter(({ network }) => network.family === family)
      .flatMap(({ network, except }) => {
        const parts = except.filter((part) => part.family === family)
        return subtract(spanOf(network), parts)
      }),
  )
  const bits = family === 1 ? 32n : 128n
  if (spans.length === 1 && spans[0]!.last - spans[0]!.first === (1n << bits) - 1n) return 'all'
  return spans.map((span) => printSpan(span, family))
}

export function printCidr({ bytes, family, bits }: Cidr): string {
  return `${printAddress(bytes, family)}/${bits}`
}

function spanOf({ bytes, bits }: Cidr): AddressSpan {
  const first = numberOf(maskAddress(bytes, bits))
  return { first, last: first + (1n << BigInt(bytes.length * 8 - bits)) - 1n }
}

/** The parts of a span that are in none of the networks. */
function subtract(whole: AddressSpan, networks: readonly Cidr[]): readonly AddressSpan[] {
  const parts: AddressSpan[] = []
  let { first } = whole
  for (const { first: start, last } of join(networks.map(spanOf))) {
    if (last < first || start > whole.last) continue
    if (start > first) parts.push({ first, last: start - 1n })
    first = last + 1n
  }
  if (first <= whole.last) parts.push({ first, last: whole.last })
  return parts
}

/** Sorts spans and joins those that overlap or touch. */
function join(spans: readonly AddressSpan[]): readonly AddressSpan[] {
  const joined: AddressSpan[] = []
  for (const span of [...spans].sort((a, b) => (a.first < b.first ? -1 : 1))) {
    const before = joined.at(-1)
    if (before === undefined || before.last + 1n < span.first) joined.push(span)
    else if (span.last > before.last) joined[joined.length - 1] = { ...before, last: span.last }
  }
  return joined
}

function printSpan({ first, last }: AddressSpan, family: AddressFamily): string {
  const start = printAddress(bytesOf(first, family), family)
  if (first === last) return start
  const size = last - first + 1n
  if ((size & (size - 1n)) === 0n && first % size === 0n) {
    const bits = (family === 1 ? 32 : 128) - (size.toString(2).length - 1)
    return `${start}/${bits}`
  }
  return `${start}-${printAddress(bytesOf(last, family), family)}`
}

function numberOf(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}

function bytesOf(value: bigint, family: AddressFamily): Uint8Array {
  const octets = family === 1 ? 4 : 16
  return Buffer.from(value.toString(16).padStart(octets * 2, '0'), 'hex')
}
