import { InputError } from '../base/errors.ts'
import { type CommandArgs, refuseWords, scanMixed } from './args.ts'

/** The page of the directive `health` without an address. */
const PAGE = 'http://127.0.0.1:8080/health'

export const HEALTH: CommandArgs = {
  usage: 'health [URL]',
  flags: [],
}

/** Returns the URL to request. Throws InputError. */
export function scanHealthArgs(argv: readonly string[]): URL {
  const flags = scanMixed(argv, HEALTH.flags)
  if (typeof flags === 'string') throw new InputError(undefined, flags)
  const [text = PAGE, ...more] = flags.rest
  const fault = refuseWords(more)
  if (fault !== undefined) throw new InputError(undefined, fault)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:') {
    throw new InputError(undefined, `invalid URL: ${text}: must be one such as ${PAGE}`)
  }
  return url
}
