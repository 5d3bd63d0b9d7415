import { scanAddress } from '../../src/dns/text/address.ts'

/** What `proxyHeader` composes; parts that are left out are those of an ordinary header. */
export interface HeaderParts {
  readonly source?: string
  readonly port?: number
  /** Octets after the addresses. */
  readonly tlvs?: Uint8Array
  /** Version and command; default: version 2, PROXY. */
  readonly command?: number
  /** Family and transport; default: UDP of the family of `source`. */
  readonly kind?: number
  /** What the header says that it has after its first 16 octets; default: the truth. */
  readonly length?: number
  /** Octets in place of the addresses. */
  readonly addresses?: Uint8Array
}

/** A PROXY header of version 2, by the text of the specification and not by our composer. */
export function proxyHeader({
  source = '192.0.2.7',
  port = 4711,
  tlvs = new Uint8Array(0),
  command = 0x21,
  kind = source.includes(':') ? 0x22 : 0x12,
  length,
  addresses,
}: HeaderParts = {}): Buffer {
  const { bytes } = scanAddress(source)!
  const ports = Buffer.from([port >> 8, port & 0xff, 0, 53])
  const ends = addresses ?? Buffer.concat([bytes, new Uint8Array(bytes.length), ports])
  const head = Buffer.from('0d0a0d0a000d0a515549540a00000000', 'hex')
  head[12] = command
  head[13] = kind
  head.writeUInt16BE(length ?? ends.length + tlvs.length, 14)
  return Buffer.concat([head, ends, tlvs])
}
