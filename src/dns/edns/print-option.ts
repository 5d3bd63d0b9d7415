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

/** Returns one EDNS option as dig prints it, without the leading `; `. Safe to print on a terminal. */
export function printOption(code: number, data: Uint8Array): string {
  if (code === OptionCode.ECS) {
    if (data.length === 4 && data.every((octet) => octet === 0)) return 'CLIENT-SUBNET: 0/0/0'
    const subnet = parseClientSubnet(data)
    if (subnet !== undefined) return `CLIENT-SUBNET: ${printClientSubnet(subnet)}`
  }
  if (code === OptionCode.NSID) return `NSID: ${printDump(data)}`
  if (code === OptionCode.COOKIE) return `COOKIE: ${Buffer.from(data).toString('hex')}`
  if (code === OptionCode.EDE && data.length >= 2) return `EDE: ${printExtendedError(data)}`
  if (code === OptionCode.PADDING) return `PAD: (${data.length} bytes)`
  if (code === OptionCode.KEEPALIVE && data.length === 2) {
    return `TCP KEEPALIVE: ${(((data[0]! << 8) | data[1]!) / 10).toFixed(1)} secs`
  }
  if (code === OptionCode.REPORT_CHANNEL) {
    const agent = parseName(data, 0, data.length)
    if (agent?.end === data.length) return `REPORT-CHANNEL: ${printName(agent.name)}`
  }
  if (code === OptionCode.ZONEVERSION && data.length === 6 && data[1] === 0) {
    const serial = Buffer.from(data).readUInt32BE(2)
    return `ZONEVERSION: SOA-SERIAL ${serial}, zone of ${plural(data[0]!, 'label')}`
  }
  return data.length === 0 ? `OPT=${code}` : `OPT=${code}: ${printDump(data)}`
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
