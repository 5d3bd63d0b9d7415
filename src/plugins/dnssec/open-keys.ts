import type { SetupContext } from '../../plugin/directive.ts'
import { KeyFiles } from './key-files.ts'
import type { DnssecOptions } from './options.ts'
import type { ServedKeys } from './served-keys.ts'

/** Returns the keys of the place that the Corefile names. No I/O. */
export function openKeys({ keys, zones }: DnssecOptions, c: SetupContext): ServedKeys {
  switch (keys.kind) {
    case 'files':
      return new KeyFiles(keys.files, zones)
    case 'directory':
      throw c.dispenser.error('keys DIR is not supported by this version; use key file')
  }
}
