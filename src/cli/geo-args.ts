import { InputError } from '../base/errors.ts'
import { type Address, scanAddress } from '../dns/text/address.ts'
import type { RecordsPlace } from '../publish/offline/offline-records.ts'
import { type CommandArgs, flagsOf, refuseWords, scanMixed } from './args.ts'
import { type DataFormat, FORMAT_FLAG, readFormat } from './data-format.ts'
import { chooseRecords } from './offline-flags.ts'

/** The arguments of `sextant geo`. */
export interface GeoArgs {
  readonly text: string
  readonly address: Address
  /** Undefined = the bundled database, without a Corefile. */
  readonly conf: string | undefined
  readonly records: RecordsPlace | undefined
  readonly format: DataFormat
}

export const GEO: CommandArgs = {
  usage: 'geo ADDR [-conf FILE] [--records FILE] [-o FORMAT]',
  flags: [
    ...flagsOf(`
    -conf FILE | (the bundled database) | use the databases, net lines and records of this Corefile, block by block
    --records FILE | (those of the Corefile) | DNSRecords as kubectl get dnsrecord -A -o yaml prints them; - = standard input
  `),
    ...FORMAT_FLAG,
  ],
}

/** Accepts flags before and after the address. Throws InputError. */
export function scanGeoArgs(argv: readonly string[]): GeoArgs {
  const flags = scanMixed(argv, GEO.flags)
  if (typeof flags === 'string') throw new InputError(undefined, flags)
  const { given, rest } = flags
  const [text, ...more] = rest
  if (text === undefined) throw new InputError(undefined, 'no address: sextant geo ADDR')
  const fault = refuseWords(more)
  if (fault !== undefined) throw new InputError(undefined, fault)
  const address = scanAddress(text)
  if (address === undefined) throw new InputError(undefined, `invalid address: ${text}`)
  const format = readFormat(given)
  const conf = given.get('conf')
  const records = chooseRecords(given.get('records'))
  if (conf === undefined && records !== undefined)
    throw new InputError(undefined, '--records needs -conf')
  return { text, address, conf, records, format }
}
