import { InputError, type Position } from '../base/errors.ts'
import { lowerName, printName, ROOT_NAME, scanName } from '../dns/name/name.ts'
import { type Cidr, scanCidr } from '../dns/text/address.ts'
import type { Token } from './token.ts'

type Scheme = 'dns' | 'tls' | 'quic' | 'grpc' | 'https' | 'https3'

/** One key of a server block: the zone, and where it is served. */
export interface Key {
  readonly scheme: Scheme
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  /** Presentation form, lower case, with the final dot. */
  readonly zoneText: string
  /** 0..65535; 0 = any free port. */
  readonly port: number
}

/** The scheme's port. For `dns`, the default of the command line overrides it. */
const SCHEME_PORT: Readonly<Record<Scheme, number>> = {
  dns: 53,
  tls: 853,
  quic: 853,
  grpc: 443,
  https: 443,
  https3: 443,
}

/** Longest zone of a key, in characters: CoreDNS's limit. */
const ZONE_TEXT_MAX = 255

/**
 * Reads a key, `[scheme://]zone[:port]`. A CIDR as zone becomes its reverse zones: one, or several
 * if the mask does not end at an octet (IPv4) or a nibble (IPv6). `dnsPort`: for keys without a
 * port and without another scheme. Throws InputError with CoreDNS's messages.
 */
export function scanKey(token: Token, dnsPort: number): Key[] {
  const fault = (message: string) => keyError(token, message)
  const [scheme, rest] = splitScheme(token.text)
  const { zone: zoneText, port } = splitPort(rest, fault)
  if (zoneText.length > ZONE_TEXT_MAX) {
    throw fault(`specified zone is too long: ${zoneText.length} > ${ZONE_TEXT_MAX}`)
  }
  const zone = zoneText === '' ? undefined : scanName(zoneText, ROOT_NAME)
  if (zone === undefined) throw fault(`zone is not a valid domain name: ${zoneText}`)
  const effectivePort = port ?? (scheme === 'dns' ? dnsPort : SCHEME_PORT[scheme])
  if (effectivePort < 0 || effectivePort > 65535) {
    throw fault(`address ${effectivePort}: invalid port`)
  }
  const cidr = scanCidr(zoneText)
  const zones = cidr === undefined ? [lowerName(zone)] : reverseZones(cidr)
  return zones.map((name) => ({
    scheme,
    zone: name,
    zoneText: printName(name),
    port: effectivePort,
  }))
}

function keyError(at: Position, message: string): InputError {
  const position = { file: at.file, line: at.line }
  return new InputError(position, `error inspecting server blocks: ${message}`)
}

/** Splits off the scheme. An unknown scheme is part of the zone. */
function splitScheme(text: string): [Scheme, string] {
  for (const scheme of Object.keys(SCHEME_PORT) as Scheme[]) {
    const prefix = `${scheme}://`
    if (text.startsWith(prefix)) return [scheme, text.slice(prefix.length)]
  }
  return ['dns', text]
}

/** Text after the last colon is a port only if it is an integer. A CIDR's mask is before it. */
function splitPort(
  text: string,
  fault: (message: string) => InputError,
): { zone: string; port: number | undefined } {
  const colon = text.lastIndexOf(':')
  if (colon === text.length - 1) {
    throw fault(`expecting data after last colon: ${JSON.stringify(text)}`)
  }
  const digits = text.slice(colon + 1)
  if (colon === -1 || !/^[+-]?\d{1,18}$/.test(digits)) return { zone: text, port: undefined }
  return { zone: text.slice(0, colon), port: Number(digits) }
}

/** The reverse zones that together cover `cidr`, in order of address. */
function reverseZones(cidr: Cidr): Uint8Array[] {
  const digitBits = cidr.family === 1 ? 8 : 4
  const digitCount = Math.ceil(cidr.bits / digitBits)
  const zoneCount = 2 ** (digitCount * digitBits - cidr.bits)
  const zones: Uint8Array[] = []
  for (let i = 0; i < zoneCount; i++) zones.push(reverseZone(cidr, digitBits, digitCount, i))
  return zones
}

/** The reverse zone of `cidr`'s first `digitCount` digits, `offset` added to the last of them. */
function reverseZone(
  cidr: Cidr,
  digitBits: number,
  digitCount: number,
  offset: number,
): Uint8Array {
  const labels: string[] = []
  for (let digit = 0; digit < digitCount; digit++) {
    const octet = cidr.bytes[(digit * digitBits) >> 3]!
    const nibble = digit % 2 === 0 ? octet >> 4 : octet & 15
    const value = (digitBits === 8 ? octet : nibble) + (digit === digitCount - 1 ? offset : 0)
    labels.unshift(value.toString(digitBits === 8 ? 10 : 16))
  }
  labels.push(cidr.family === 1 ? 'in-addr.arpa.' : 'ip6.arpa.')
  return scanName(labels.join('.'), ROOT_NAME)!
}
