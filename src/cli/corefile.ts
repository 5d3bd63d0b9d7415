import { existsSync } from 'node:fs'
import { readAtMost } from '../base/read.ts'
import { FILE_OCTETS_MAX } from '../corefile/importer.ts'
import { type CorefileSource, defaultCorefile, limitCorefile } from '../server/corefile-source.ts'

const CONF_DEFAULT = 'Corefile'
/** Name of a Corefile that is read from standard input. */
export const STDIN = '/dev/stdin'

/**
 * The Corefile that `-conf` names: a path, or `stdin`. Without `-conf`, ./Corefile, or the built-in
 * one if that does not exist. Throws if standard input can't be read completely.
 */
export function chooseCorefile(conf: string | undefined, dnsPort: number): CorefileSource {
  if (conf === 'stdin' && !process.stdin.isTTY) {
    const name = STDIN
    return { kind: 'text', name, text: limitCorefile(name, readAtMost(0, FILE_OCTETS_MAX)) }
  }
  if (conf !== undefined && conf !== 'stdin') return { kind: 'file', path: conf }
  if (existsSync(CONF_DEFAULT)) return { kind: 'file', path: CONF_DEFAULT }
  return defaultCorefile(dnsPort)
}
