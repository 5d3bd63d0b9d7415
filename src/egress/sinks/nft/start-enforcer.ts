import { release } from 'node:os'
import { NftPrograms } from './nft.ts'
import { NftEnforcer, type NftEnforcerOptions } from './nft-enforcer.ts'

interface NftOptions extends Omit<NftEnforcerOptions, 'canRefresh' | 'nft'> {
  /** The program and its first arguments; `['nft']` unless a test needs another. */
  readonly command: readonly string[]
}

/** Returns an enforcer that runs nft(8). It starts with the first clients. */
export function startNftEnforcer({ command, ...options }: NftOptions): NftEnforcer {
  const { table, timers } = options
  return new NftEnforcer({
    ...options,
    canRefresh: canRefresh(release()),
    nft: (onEnd) => new NftPrograms({ table, command, timers, onEnd }),
  })
}

/** True if adding an element again changes its timeout: Linux 6.12 or later. `release`: as of uname. */
export function canRefresh(release: string): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number)
  return major > 6 || (major === 6 && minor >= 12)
}
