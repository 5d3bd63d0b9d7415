import { plural } from '../../base/plural.ts'
import { EdeCode, OptionCode } from '../iana/index.ts'
import { printName } from '../name/name.ts'
import { parseName } from '../name/parse-name.ts'
import { parseClientSubnet, printClientSubnet } from './client-subnet.ts'

/** Words of RFC 8914 that are printed in capitals. */
const ACRONYMS = new Map([
  ['DS', 'DS'],
  ['DNSKEY', 'DNSKEY'],
  ['DNSSEC', 'DNSSEC'],
  ['NSEC', 'NSEC'],
  ['NXDOMAIN', 'NXDOMAIN'],
  ['RRSIGS', 'RRSIGs'],
])

const purposeOfCode = new Map<number, string>(
  Object.entries(EdeCode).map(([name, code]) => [code, name.split('_').map(printWord).join(' ')]),
)

function printWord(word: string): string {
  return ACRONYMS.get(word) ?? word[0] + word.slice(1).toLowerCase()
}

/** Prints the data of an option; undefined = they are malformed. */
type PrintData = (data: Uint8Array) => string | undefined

const PRINTERS: ReadonlyMap<number, PrintData> = new Map<number, PrintData>([
  [OptionCode.ECS, printSubnet],
  [OptionCode.NSID, (data) => `NSID: ${printDump(data)}`],
  [OptionCode.COOKIE, (data) => `COOKIE: ${Buffer.from(data).toString('hex')}`],
  [OptionCode.EDE, (data) => (data.length < 2 ? undefined : `EDE: ${printExtendedError(data)}`)],
  [OptionCode.PADDING, (data) => `PAD: (${data.length} bytes)`],
  [OptionCode.KEEPALIVE, printKeepalive],
  [OptionCode.REPORT_CHANNEL, printAgent],
  [OptionCode.ZONEVERSION, printZoneVersion],
])

/** Returns one EDNS option as dig prints it, without the leading `; `. Safe to print on a terminal. */
export function printOption(code: number, data: Uint8Array): string {
  const printed = PRINTERS.get(code)?.(data)
  if (printed !== undefined) return printed
  return data.length === 0 ? `OPT=${code}` : `OPT=${code}: ${printDump(data)}`
}

function printSubnet(data: Uint8Array): string | undefined {
  if (data.length === 4 && data.every((octet) => octet === 0)) return 'CLIENT-SUBNET: 0/0/0'
  const subnet = parseClientSubnet(data)
  return subnet && `CLIENT-SUBNET: ${printClientSubnet(subnet)}`
}

function printKeepalive(data: Uint8Array): string | undefined {
  if (data.length !== 2) return undefined
  return `TCP KEEPALIVE: ${(((data[0]! << 8) | data[1]!) / 10).toFixed(1)} secs`
}

function printAgent(data: Uint8Array): string | undefined {
  const agent = parseName(data, 0, data.length)
  return agent?.end === data.length ? `REPORT-CHANNEL: ${printName(agent.name)}` : undefined
}

function printZoneVersion(data: Uint8Array): string | undefined {
  if (data.length !== 6 || data[1] !== 0) return undefined
  const serial = Buffer.from(data).readUInt32BE(2)
  return `ZONEVERSION: SOA-SERIAL ${serial}, zone of ${plural(data[0]!, 'label')}`
}

function printExtendedError(data: Uint8Array): string {
  const code = (data[0]! << 8) | data[1]!
  const purpose = purposeOfCode.get(code)
  const head = purpose === undefined ? `${code}` : `${code} (${purpose})`
  const text = Buffer.from(data.subarray(2)).toString('utf8')
  return text === '' ? head : `${head}: (${text.replace(/\p{C}/gu, '.')})`
}

/** Returns octets in hexadecimal, then as ASCII. */
function printDump(data: Uint8Array): string {
  const hex = Array.from(data, (octet) => octet.toString(16).padStart(2, '0')).join(' ')
  const text = Buffer.from(data)
    .toString('latin1')
    .replace(/[^ -~]/g, '.')
  return `${hex} ("${text}")`
}
