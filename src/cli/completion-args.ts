import { didYouMean } from '../base/nearest.ts'
import type { CommandArgs } from './args.ts'

const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export const COMPLETION: CommandArgs = { usage: `completion ${SHELLS.join('|')}`, flags: [] }

/** Reads the arguments of `sextant completion`. Returns an object with the reason if they are invalid. */
export function scanCompletionArgs(argv: readonly string[]): Shell | { readonly fault: string } {
  const shell = SHELLS.find((name) => name === argv[0])
  if (shell !== undefined && argv.length === 1) return shell
  const hint = argv.length === 1 ? didYouMean(argv[0]!, SHELLS) : ''
  return { fault: `use: sextant ${COMPLETION.usage}${hint}` }
}
