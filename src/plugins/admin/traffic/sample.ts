import { copyOctets } from '../../../base/octets.ts'
import type { OctetChannel } from '../../../base/telemetry/octet-channel.ts'
import type { Transaction } from '../../../plugin/transaction.ts'

/*
 * A sampled query, from the thread that answered it to the control thread:
 *
 *     0  octets of the name (8)   1  rcode, or NO_REPLY (8)   2  type (16)
 *     4  queries that the sample stands for (32)   8  name, lower-case wire form
 */
const NAME = 8
const NAME_OCTETS_MAX = 255
export const SAMPLE_OCTETS_MAX = NAME + NAME_OCTETS_MAX + 1

/** `outcome`: rcode, or NO_REPLY. If the channel has no room, the sample is lost. @hot */
export function writeSample(
  out: OctetChannel,
  { query }: Transaction,
  outcome: number,
  weight: number,
): void {
  const { qname, qnameOctets, qtype } = query
  const at = out.begin(SAMPLE_OCTETS_MAX)
  if (at === -1) return
  const { octets } = out
  octets[at] = qnameOctets
  octets[at + 1] = outcome
  octets[at + 2] = qtype >>> 8
  octets[at + 3] = qtype
  octets[at + 4] = weight >>> 24
  octets[at + 5] = weight >>> 16
  octets[at + 6] = weight >>> 8
  octets[at + 7] = weight
  copyOctets(qname, 0, octets, at + NAME, qnameOctets)
  out.end(at + NAME + qnameOctets)
}

/** Visits the samples in `octets`. `kind`: outcome, type and name as Latin-1, for `readKind`. */
export function readSamples(
  octets: Uint8Array,
  visit: (kind: string, weight: number) => void,
): void {
  const samples = Buffer.from(octets.buffer, octets.byteOffset, octets.length)
  let at = 0
  while (at + NAME <= samples.length) {
    const end = at + NAME + samples[at]!
    const head = samples.toString('latin1', at + 1, at + 4)
    visit(head + samples.toString('latin1', at + NAME, end), samples.readUInt32BE(at + 4))
    at = end
  }
}

/** Reads what `readSamples` passed on. `name`: in wire form. */
export function readKind(kind: string): {
  readonly outcome: number
  readonly type: number
  readonly name: Uint8Array
} {
  const octets = Buffer.from(kind, 'latin1')
  return { outcome: octets[0]!, type: octets.readUInt16BE(1), name: octets.subarray(3) }
}
