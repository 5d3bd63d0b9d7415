import type { SetupContext } from '../../plugin/directive.ts'
import { KeyDirectory } from '../../signing/keys/key-directory.ts'
import { KeyShare } from '../../signing/shared/key-share.ts'
import type { DnssecOptions } from './options.ts'
import { tsigFaults } from './tsig-faults.ts'

/** Opens the keys of a directory for the servers that follow this one. @throws InputError. */
export function openShare(path: string, options: DnssecOptions, c: SetupContext): KeyShare {
  const [fault] = tsigFaults(options, c.block)
  if (fault !== undefined) throw fault
  const { clock, timers } = c
  return new KeyShare(new KeyDirectory({ path, clock, timers }))
}
