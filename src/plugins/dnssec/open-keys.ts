import type { SetupContext } from '../../plugin/directive.ts'
import { DirectoryKeys } from './directory-keys.ts'
import { KeyFiles } from './key-files.ts'
import type { DnssecOptions } from './options.ts'
import type { ServedKeys } from './served-keys.ts'

/** Returns the keys of the place that the Corefile names. No I/O. */
export function openKeys(options: DnssecOptions, c: SetupContext): ServedKeys {
  const { keys, zones } = options
  switch (keys.kind) {
    case 'files':
      return new KeyFiles(keys.files, zones)
    case 'directory':
      return new DirectoryKeys(keys, options, c)
  }
}
