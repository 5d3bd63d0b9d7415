import { type CommandArgs, flagsOf, isOn, scanFlags } from './args.ts'
import { type DataFormat, FORMAT_FLAG, scanFormat } from './data-format.ts'
import { COREFILE_FLAGS, scanCorefileFlags } from './serve-args.ts'

/** The arguments of `sextant check`. */
export interface CheckArgs {
  readonly conf: string | undefined
  readonly dnsPort: number
  /** Check this directory of DNSRecord manifests too. */
  readonly manifests: string | undefined
  /** Send nothing to a cluster. */
  readonly offline: boolean
  /** Exit with 1 for warnings too. */
  readonly strict: boolean
  readonly format: DataFormat
}

export const CHECK: CommandArgs = {
  usage: 'check [-conf FILE] [FLAG]...',
  flags: [
    ...COREFILE_FLAGS,
    ...flagsOf(`
      --manifests DIR | | also validate the DNSRecords in DIR; without -conf, check only these
      --offline | | do not contact a Kubernetes cluster, for checks in CI
      --strict | | exit with 1 for warnings too
    `),
    ...FORMAT_FLAG,
  ],
}

/** Reads the arguments of `sextant check`. Returns a string if they are invalid: the reason. */
export function scanCheckArgs(argv: readonly string[]): CheckArgs | string {
  const flags = scanFlags(argv, CHECK.flags)
  if (typeof flags === 'string') return flags
  const corefile = scanCorefileFlags(flags)
  if (typeof corefile === 'string') return corefile
  const { given } = flags
  const format = scanFormat(given)
  if (typeof format !== 'string') return format.fault
  if (given.has('manifests') && corefile.conf === undefined && given.has('dns.port'))
    return '-dns.port has no effect: --manifests without -conf checks no Corefile; remove -dns.port, or add -conf'
  return {
    ...corefile,
    manifests: given.get('manifests') || undefined,
    offline: isOn(flags, 'offline'),
    strict: isOn(flags, 'strict'),
    format,
  }
}
