import { InputError } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import { TSIG_KEYS } from '../../dns/tsig/key.ts'
import { missingKey } from '../../plugin/arguments/key-name.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import { isStrong } from '../../signing/shared/seal.ts'
import type { DnssecOptions } from './options.ts'

/** Returns what is wrong with the keys of `tsig` that `share` and `from` name. Call it once `tsig` has started. */
export function tsigFaults(
  { share, from }: Pick<DnssecOptions, 'share' | 'from'>,
  block: BlockConfig,
): InputError[] {
  const named = [
    ...(share?.keyNames ?? []).map((name) => ({ name, position: share!.position })),
    ...(from === undefined ? [] : [{ name: from.keyName, position: from.position }]),
  ]
  return named.flatMap(({ name, position }) => {
    const fault = (message: string): InputError => new InputError(position, message)
    const key = block.shared.acquire(TSIG_KEYS).find(name)
    if (key === undefined) return missingKey(name, block, fault)
    if (isStrong(key.secret)) return []
    const fix = 'make one of 16 octets or more with tsig-keygen'
    return [fault(`the secret of the key ${printName(name)} is too short to protect keys; ${fix}`)]
  })
}
