import { resolve } from 'node:path'
import { InputError } from '../base/errors.ts'
import type { RecordsPlace } from '../publish/offline/offline-records.ts'
import { type CommandArgs, flagsOf, refuseWords, scanFlags } from './args.ts'
import { type DataFormat, FORMAT_FLAG, readFormat } from './data-format.ts'
import { chooseRecords } from './offline-flags.ts'

/** The arguments of `sextant what-if`. */
export interface WhatIfArgs {
  readonly conf: string | undefined
  readonly newConf: string | undefined
  readonly oldRecords: RecordsPlace | undefined
  readonly newRecords: RecordsPlace | undefined
  /** Absolute path of a database. */
  readonly database: string | undefined
  /** 0..1; undefined = no limit. */
  readonly shareMax: number | undefined
  readonly format: DataFormat
}

export const WHAT_IF: CommandArgs = {
  usage:
    'what-if [-conf FILE] --manifests DIR | --records FILE | --new-conf FILE | --mmdb FILE [FLAG]...',
  flags: [
    ...flagsOf(`
    -conf FILE | (./Corefile) | the present Corefile
    --manifests DIR | | after the change, the DNSRecords are those in DIR
    --records FILE | | after the change, the DNSRecords are those in FILE, as kubectl get dnsrecord -A -o yaml prints them; - = standard input
    --new-conf FILE | | after the change, the Corefile is FILE
    --mmdb FILE | | after the change, the location database is FILE
    --old-records FILE | | before the change, the DNSRecords are those in FILE; necessary for the records of a cluster
    --max-share N% | | exit with 1 if a name changes for more than N% of the IPv4 or of the IPv6 addresses; new names do not count
  `),
    ...FORMAT_FLAG,
  ],
}
/** Flags that say what changes. */
const CHANGES = ['manifests', 'records', 'new-conf', 'mmdb']

/** Reads the arguments, and the records that they name. Throws InputError. */
export function scanWhatIfArgs(argv: readonly string[]): WhatIfArgs {
  const flags = scanFlags(argv, WHAT_IF.flags)
  if (typeof flags === 'string') throw new InputError(undefined, flags)
  const { given: values, rest } = flags
  const fault = refuseWords(rest)
  if (fault !== undefined) refuse(fault)
  const given = (name: string): string | undefined => values.get(name) || undefined
  if (!CHANGES.some((name) => given(name) !== undefined))
    refuse(
      'no change is named: add --manifests DIR, --records FILE, --new-conf FILE or --mmdb FILE',
    )
  const manifests = given('manifests')
  const records = given('records')
  if (manifests !== undefined && records !== undefined)
    refuse('--manifests and --records exclude each other')
  if (records === '-' && given('old-records') === '-')
    refuse('--records and --old-records cannot both be standard input')
  const database = given('mmdb')
  return {
    conf: given('conf'),
    newConf: given('new-conf'),
    oldRecords: chooseRecords(given('old-records')),
    newRecords:
      manifests === undefined
        ? chooseRecords(records)
        : { kind: 'directory', directory: resolve(manifests) },
    database: database === undefined ? undefined : resolve(database),
    shareMax: scanShare(given('max-share')),
    format: readFormat(values),
  }
}

/** Reads `5%` or `0.5%`. */
function scanShare(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const percent = /^(\d{1,3}(?:\.\d{1,6})?)%?$/.exec(text)?.[1]
  if (percent === undefined || Number(percent) > 100)
    refuse(
      `invalid value ${text} for --max-share: must be a percentage from 0% to 100%, such as 5%`,
    )
  return Number(percent) / 100
}

function refuse(message: string): never {
  throw new InputError(undefined, message)
}
