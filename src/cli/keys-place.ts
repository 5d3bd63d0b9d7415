import { resolve } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { systemTimers } from '../base/timers.ts'
import { Dispenser } from '../corefile/dispenser.ts'
import type { ServerBlock } from '../corefile/parser.ts'
import { loadCorefile } from '../server/corefile-source.ts'
import { KeyDirectory } from '../signing/keys/key-directory.ts'
import type { ImportStore } from '../signing/keys/key-store.ts'
import { chooseCorefile } from './corefile.ts'
import type { KeysArgs } from './keys-args.ts'
import { findKubeconfig } from './kubeconfig.ts'
import { DNS_PORT } from './serve-args.ts'

/** Opens the key store that the arguments name. @throws InputError. */
export async function openStore(args: KeysArgs): Promise<ImportStore> {
  const { secret, kubeconfig, directory, conf } = args
  const [clock, timers] = [systemClock, systemTimers]
  if (secret === undefined) {
    const path = directory === undefined ? directoryOfCorefile(conf) : resolve(directory)
    return new KeyDirectory({ path, clock, timers })
  }
  // The Kubernetes modules are loaded only here.
  const { openApi } = await import('../kube/open-api.ts')
  const { KeySecret } = await import('../signing/keys/key-secret.ts')
  const { api } = await openApi({ kubeconfig: findKubeconfig(kubeconfig), context: '' })
  return new KeySecret({ ...secret, api, clock, timers })
}

/**
 * Returns the absolute path of the only directory that `keys DIR` of `dnssec` names in the Corefile. @throws InputError
 * if the Corefile is invalid, or names none or several.
 */
function directoryOfCorefile(conf: string | undefined): string {
  const { blocks } = loadCorefile(chooseCorefile(conf, DNS_PORT), DNS_PORT, {
    env: process.env,
    directiveNames: ['dnssec', 'root'],
    onUnknown: () => {},
    warn: () => {},
  })
  const directories = [...new Set(blocks.flatMap(directoriesOf))]
  const [directory, ...others] = directories
  if (directory === undefined)
    throw new InputError(
      undefined,
      'the Corefile names no directory of keys; add -keys DIR or -secret NAMESPACE/NAME',
    )
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
