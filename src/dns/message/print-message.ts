import { printOption } from '../edns/print-option.ts'
import { printClass, printOpcode, printRcode, printType } from '../iana/index.ts'
import { printName } from '../name/name.ts'
import { printRdata } from '../rdata/index.ts'
import { EDNS_DNSSEC_OK, HeaderFlag } from './header.ts'
import type { Edns, Message, Question, ResourceRecord } from './message.ts'

/** Columns where dig prints TTL, class, type and rdata. */
const COLUMNS = [24, 32, 40, 48]
const TAB_COLUMNS = 8

const FLAG_NAMES = [
  [HeaderFlag.QR, 'qr'],
  [HeaderFlag.AA, 'aa'],
  [HeaderFlag.TC, 'tc'],
  [HeaderFlag.RD, 'rd'],
  [HeaderFlag.RA, 'ra'],
  [HeaderFlag.AD, 'ad'],
  [HeaderFlag.CD, 'cd'],
] as const

/** Returns the message as dig prints it, one record per line; every line ends with a line feed. */
export function printMessage(message: Message): string {
  const { opcode, rcode, id, question, edns } = message
  const status = `status: ${printRcode(rcode)}, id: ${id}`
  const lines = [
    `;; ->>HEADER<<- opcode: ${printOpcode(opcode)}, ${status}`,
    `;; flags: ${printFlags(message.flags)}; ${printCounts(message)}`,
    '',
  ]
  if (edns !== undefined) lines.push(...printEdns(edns))
  if (question !== undefined) lines.push(';; QUESTION SECTION:', printQuestion(question), '')
  pushSection(lines, 'ANSWER', message.answer)
  pushSection(lines, 'AUTHORITY', message.authority)
  pushSection(lines, 'ADDITIONAL', message.additional)
  return `${lines.join('\n')}\n`
}

/** The names of the flags that are set, as dig prints them. */
export function flagNames(flags: number): string[] {
  return FLAG_NAMES.filter(([flag]) => (flags & flag) !== 0).map(([, name]) => name)
}

function printFlags(flags: number): string {
  const names = flagNames(flags)
  const mustBeZero = (flags & HeaderFlag.Z) === 0 ? '' : '; MBZ: 0x4'
  return names.join(' ') + mustBeZero
}

function printCounts(message: Message): string {
  const { question, answer, authority, additional, edns } = message
  const questions = question === undefined ? 0 : 1
  const additionals = additional.length + (edns === undefined ? 0 : 1)
  return (
    `QUERY: ${questions}, ANSWER: ${answer.length}, ` +
    `AUTHORITY: ${authority.length}, ADDITIONAL: ${additionals}`
  )
}

function printEdns(edns: Edns): string[] {
  const dnssecOk = (edns.flags & EDNS_DNSSEC_OK) === 0 ? '' : ' do'
  const others = edns.flags & ~EDNS_DNSSEC_OK
  const mustBeZero = others === 0 ? '' : `; MBZ: 0x${others.toString(16).padStart(4, '0')}`
  const { version, payloadOctets, options } = edns
  return [
    ';; OPT PSEUDOSECTION:',
    `; EDNS: version: ${version}, flags:${dnssecOk}${mustBeZero}; udp: ${payloadOctets}`,
    ...options.map(({ code, data }) => `; ${printOption(code, data)}`),
  ]
}

function printQuestion({ name, type, rrclass }: Question): string {
  // dig leaves the column of the TTL empty.
  return printColumns([`;${printName(name)}`, '', printClass(rrclass), printType(type)])
}

function pushSection(lines: string[], title: string, records: readonly ResourceRecord[]): void {
  if (records.length > 0) lines.push(`;; ${title} SECTION:`, ...records.map(printRecord), '')
}

/** Returns a record as a line of a zone file: owner, TTL, class, type and rdata, in columns. */
export function printRecord({ owner, ttlSeconds, rrclass, type, rdata }: ResourceRecord): string {
  return printColumns([
    printName(owner),
    String(ttlSeconds),
    printClass(rrclass),
    printType(type),
    printRdata(type, rdata),
  ])
}

/** Joins fields with tabs up to their columns, or with one blank if a field is too long. */
function printColumns(fields: readonly string[]): string {
  let line = ''
  let column = 0
  for (const [i, field] of fields.entries()) {
    const target = COLUMNS[i - 1]
    if (target !== undefined && !(field === '' && column < target)) {
      const tabs = Math.ceil((target - column) / TAB_COLUMNS)
      line += tabs > 0 ? '\t'.repeat(tabs) : ' '
      column = tabs > 0 ? target : column + 1
    }
    line += field
    column += field.length
  }
  return line
}
