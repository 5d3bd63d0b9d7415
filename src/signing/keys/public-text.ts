import { InputError } from '../../base/errors.ts'
import { FLAG_REVOKE, FLAGS_KSK, FLAGS_ZSK } from '../../dns/dnssec/dnskey.ts'
import { keyTag } from '../../dns/dnssec/key-tag.ts'
import { RRType, scanClass, scanType } from '../../dns/iana/index.ts'
import { lowerName, printName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { printRdata, RdataError, type RdataField, scanRdata } from '../../dns/rdata/index.ts'
import { scanTtl } from '../../dns/text/ttl.ts'
import { Entry, ZoneLexer } from '../../zone/zonefile/lexer.ts'

/** The DNSKEY record of a public key file. */
export interface PublicText {
  /** Lower-case wire form. */
  readonly zone: Uint8Array
  readonly dnskey: Uint8Array
}

/** Scans a file with one DNSKEY record, and comments. `file`: for messages. @throws InputError with the line. */
export function scanPublicText(text: string, file: string): PublicText {
  const lexer = new ZoneLexer(Buffer.from(text, 'utf8'))
  let found: PublicText | undefined
  for (let entry = lexer.next(); entry !== Entry.End; entry = lexer.next()) {
    if (entry === Entry.Bad) throw new InputError({ file, line: lexer.faultLine }, lexer.fault)
    if (entry === Entry.Blank) continue
    if (found !== undefined)
      throw new InputError({ file, line: lexer.line }, 'the file has two records; leave one')
    const record = scanRecord(fieldsOf(lexer))
    if (typeof record === 'string') throw new InputError({ file, line: lexer.line }, record)
    found = record
  }
  if (found === undefined) throw new InputError({ file, line: 1 }, 'the file has no DNSKEY record')
  return found
}

function fieldsOf({ input, start, end, quoted, count }: ZoneLexer): RdataField[] {
  return Array.from({ length: count }, (_, i) => {
    return { text: input.toString('utf8', start[i], end[i]), quoted: quoted[i] === 1 }
  })
}

/** Reads `OWNER [TTL] [CLASS] DNSKEY FLAGS PROTOCOL ALGORITHM KEY`. Returns a string if it is invalid: the reason. */
function scanRecord([first, ...fields]: readonly RdataField[]): PublicText | string {
  const zone = scanName(first?.text ?? '')
  if (zone === undefined) return 'the record has no valid owner name'
  const at = fields.findIndex(({ text }) => !isTtlOrClass(text))
  if (scanType(fields[at]?.text ?? '') !== RRType.DNSKEY)
    return 'the record must be OWNER [TTL] IN DNSKEY FLAGS PROTOCOL ALGORITHM KEY'
  const dnskey = scanRdata(RRType.DNSKEY, fields.slice(at + 1), ROOT_NAME)
  if (dnskey instanceof RdataError) return `DNSKEY: ${dnskey.message}`
  return { zone: lowerName(zone), dnskey }
}

function isTtlOrClass(text: string): boolean {
  return scanClass(text) !== undefined || scanTtl(text) !== undefined
}

/** Returns the DNSKEY record as a line of a zone file. */
export function printDnskeyRecord({ zone, dnskey }: PublicText): string {
  return `${printName(zone)} IN DNSKEY ${printRdata(RRType.DNSKEY, dnskey)}`
}

/** Returns the text of a public key file, with a comment for people as BIND writes it. */
export function printPublicText(key: PublicText): string {
  const tag = keyTag(key.dnskey)
  const role = isKeySigning(flagsOf(key.dnskey)) ? 'key-signing' : 'zone-signing'
  const about = `; This is a ${role} key, keyid ${tag}, for ${printName(key.zone)}`
  return `${about}\n${printDnskeyRecord(key)}\n`
}

/** Returns the flags in DNSKEY rdata. */
export function flagsOf(dnskey: Uint8Array): number {
  return (dnskey[0]! << 8) | dnskey[1]!
}

/** True for the flags of a secure entry point, which a KSK or a CSK has. */
export function isKeySigning(flags: number): boolean {
  return (flags & ~FLAG_REVOKE) === FLAGS_KSK
}

/** Why a key with such flags is refused; '' = it is not. */
export function flagsFault(flags: number): string {
  if ([FLAGS_ZSK, FLAGS_KSK].includes(flags & ~FLAG_REVOKE)) return ''
  return `the flags of the DNSKEY are ${flags}; they must be ${FLAGS_ZSK} or ${FLAGS_KSK}`
}
