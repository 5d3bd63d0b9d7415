import { execFile } from 'node:child_process'
import { InputError, type Position } from '../../base/errors.ts'
import { isSystemError } from '../../base/system-error.ts'

const PROBE_MS_MAX = 10_000

/** A program that the agent runs. */
interface ProgramProbe {
  readonly command: readonly string[]
  /** How to do without the program, for the error. */
  readonly instead: string
  readonly packageName: string
}

export const NFT: ProgramProbe = {
  // Not `list tables`: nft 1.0 reads all elements of all sets for it, seconds after a restart.
  command: ['nft', 'list', 'chains', 'inet'],
  instead: 'write `dry_run` in place of `nftables`',
  packageName: 'nftables',
}

export const CONNTRACK: ProgramProbe = {
  command: ['conntrack', '-C'],
  instead: 'write `zombies 0`, so that names end with their TTL',
  packageName: 'conntrack',
}

/** Finds out whether the agent can run its programs. Throws an InputError that says how to mend it. */
export async function probePrograms(
  probes: readonly ProgramProbe[],
  position: Position,
): Promise<void> {
  for (const probe of probes) {
    const fault = await faultOf(probe)
    if (fault !== '') throw new InputError(position, `plugin/egress: ${fault}`)
  }
}

function faultOf({ command, instead, packageName }: ProgramProbe): Promise<string> {
  const [program = '', ...args] = command
  return new Promise((resolve) => {
    execFile(program, args, { timeout: PROBE_MS_MAX }, (error, _stdout, stderr) => {
      if (error === null) return resolve('')
      if (isSystemError(error) && error.code === 'ENOENT') {
        const install = `install the package ${packageName}`
        return resolve(`${program} is not installed: ${install}, or ${instead}`)
      }
      const text = stderr.trim().split('\n', 1)[0] || error.message
      const isRefused = /not permitted|permission/i.test(text)
      const fix = isRefused ? `give this process CAP_NET_ADMIN, or ${instead}` : `or ${instead}`
      resolve(`\`${command.join(' ')}\` failed: ${text}; ${fix}`)
    })
  })
}
