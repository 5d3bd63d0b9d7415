import { resolve } from 'node:path'
import { InputError } from '../base/errors.ts'
import { Dispenser } from '../corefile/dispenser.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import { loadCorefile } from '../server/corefile-source.ts'
import { chooseCorefile } from './corefile.ts'
import { DNS_PORT } from './serve-args.ts'

/**
 * Returns the absolute path of the only directory that `keys DIR` of `dnssec` names in the Corefile. @throws InputError
 * if the Corefile is invalid, or names none or several.
 */
export function directoryOfCorefile(conf: string | undefined): string {
  const { blocks } = loadCorefile(chooseCorefile(conf, DNS_PORT), DNS_PORT, {
    env: process.env,
    directiveNames: ['dnssec', 'root'],
    onUnknown: () => {},
    warn: () => {},
  })
  const directories = [...new Set(blocks.flatMap(directoriesOf))]
  const [directory, ...others] = directories
  if (directory === undefined)
    throw new InputError(undefined, 'the Corefile names no directory of keys; add -keys DIR')
  if (others.length === 0) return directory
  const message = 'the Corefile names several directories of keys; choose one with -keys'
  throw new InputError(undefined, `${message}: ${directories.join(', ')}`)
}

function directoriesOf({ directives }: ServerBlock): string[] {
  const root = directives.get('root')?.at(-1)?.text ?? '.'
  const found: string[] = []
  const d = new Dispenser(directives.get('dnssec') ?? [])
  while (d.next()) {
    d.remainingArgs()
    d.eachProperty(() => {
      const word = d.value()
      const [path, ...more] = d.remainingArgs()
      if (word === 'keys' && path !== undefined && more.length === 0)
        found.push(resolve(root, path))
      // The lines of a policy.
      d.eachProperty(() => d.remainingArgs())
    })
  }
  return found
}
