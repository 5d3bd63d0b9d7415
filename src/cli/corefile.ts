import { existsSync, readFileSync } from 'node:fs'
import { type CorefileSource, defaultCorefile } from '../server/corefile-source.ts'

const CONF_DEFAULT = 'Corefile'

/**
 * The Corefile that `-conf` names: a path, or `stdin`. Without it ./Corefile, or what is built in if
 * there is none. Throws where standard input can't be read.
 */
export function chooseCorefile(conf: string | undefined, dnsPort: number): CorefileSource {
  if (conf === 'stdin' && !process.stdin.isTTY) {
    return { kind: 'text', name: '/dev/stdin', text: readFileSync(0, 'utf8') }
  }
  if (conf !== undefined && conf !== 'stdin') return { kind: 'file', path: conf }
  if (existsSync(CONF_DEFAULT)) return { kind: 'file', path: CONF_DEFAULT }
  return defaultCorefile(dnsPort)
}
