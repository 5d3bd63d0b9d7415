import { InputError } from '../base/errors.ts'
import { ADMIN_FLAGS, type AdminArgs, isServer, scanAdminArgs } from './admin-args.ts'
import { type CommandArgs, flagsOf, isOn, refuseWords, scanMixed } from './args.ts'
import { type DataFormat, FORMAT_FLAG, readFormat } from './data-format.ts'

interface StatusArgs extends AdminArgs {
  readonly format: DataFormat
  /** Print the status again when it changes. */
  readonly watches: boolean
}

export const STATUS: CommandArgs = {
  usage: 'status [@SERVER] [-conf FILE] [--token-file FILE] [--ca FILE] [-o FORMAT] [--watch]',
  flags: [
    ...flagsOf(
      '-conf FILE | (./Corefile) | without @SERVER, or with @ alone: the Corefile of the server',
    ),
    ...ADMIN_FLAGS,
    ...FORMAT_FLAG,
    ...flagsOf(
      '--watch, -w | | print the status again when it changes, until the program is interrupted',
    ),
  ],
}

/** The same flags, for the part of the status that is about peers. */
export const PEERS: CommandArgs = { ...STATUS, usage: STATUS.usage.replace(/^status/, 'peers') }

/** Reads the arguments of `sextant status` and `sextant peers`. Throws InputError. */
export function scanStatusArgs(argv: readonly string[]): StatusArgs {
  const flags = scanMixed(argv, STATUS.flags)
  if (typeof flags === 'string') throw new InputError(undefined, flags)
  const { given, rest } = flags
  const fault = refuseWords(rest.filter((word) => !isServer(word)))
  if (fault !== undefined) throw new InputError(undefined, fault)
  // Without `@SERVER`, the command queries the server of the Corefile.
  const admin = scanAdminArgs(rest.some(isServer) ? rest : ['@'], given)
  if (typeof admin === 'string') throw new InputError(undefined, admin)
  return { ...admin!, format: readFormat(given), watches: isOn(flags, 'watch') }
}
