import type { SetupContext } from '../../plugin/directive.ts'
import { KeyFiles } from './key-files.ts'
import { ManagedKeys } from './managed-keys.ts'
import type { DnssecOptions } from './options.ts'
import type { ServedKeys } from './served-keys.ts'

/** Returns the keys of the place that the Corefile names. No I/O. */
export function openKeys(options: DnssecOptions, c: SetupContext): ServedKeys {
  const { keys, zones } = options
  if (keys.kind === 'files') return new KeyFiles(keys.files, zones)
  return new ManagedKeys(keys, options, c)
}
