import { InputError } from '../../base/errors.ts'
import { loadLibc } from './batch/libc.ts'

/** A way to serve UDP, and its text for the log. */
export interface ChosenUdp {
  readonly kind: 'batch' | 'dgram'
  readonly description: string
}

/**
 * Chooses how UDP is served: in batches if the machine supports them (see `loadLibc`), else over
 * node:dgram. `forced` is the value of SEXTANT_UDP: `batch`, `dgram`, or undefined for automatic
 * choice. Throws an InputError for any other value, and if `batch` is forced and not supported.
 * `load` is for tests.
 */
export function chooseUdp(forced: string | undefined, load: () => unknown = loadLibc): ChosenUdp {
  switch (forced) {
    case 'dgram':
      return { kind: 'dgram', description: 'dgram (SEXTANT_UDP)' }
    case undefined:
    case '':
    case 'batch':
      break
    default:
      throw new InputError(
        undefined,
        `SEXTANT_UDP is "${forced}"; unset it, or set it to batch or dgram`,
      )
  }
  try {
    load()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (forced !== 'batch') return { kind: 'dgram', description: `dgram (${reason})` }
    throw new InputError(undefined, `SEXTANT_UDP=batch: ${reason}`, error)
  }
  return { kind: 'batch', description: 'batch (recvmmsg)' }
}
