import type { InputError } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { printName, scanName } from '../../dns/name/name.ts'
import { TSIG_KEYS } from '../../dns/tsig/key.ts'
import type { BlockConfig } from '../directive.ts'

/** Reads the one argument of `key`: the name of a key of `tsig`. */
export function scanKeyName(d: Dispenser): Uint8Array {
  const args = d.remainingArgs()
  const name = args.length === 1 ? scanName(args[0]!) : undefined
  if (name === undefined) throw d.error('key takes the name of a key that `tsig` has')
  return name
}

/** Returns a fault if the block has no such key. Call it once `tsig` has started. */
export function missingKey(
  keyName: Uint8Array | undefined,
  { shared }: BlockConfig,
  fault: (message: string) => InputError,
): InputError[] {
  if (keyName === undefined || shared.acquire(TSIG_KEYS).find(keyName) !== undefined) return []
  return [fault(`no key ${printName(keyName)}; add it to the directive tsig of this block`)]
}
