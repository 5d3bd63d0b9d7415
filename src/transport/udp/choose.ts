import { InputError } from '../../base/errors.ts'
import { loadLibc } from './batch/libc.ts'
import { cutsMessages } from './batch/udp-segment.ts'

/** A way to serve UDP, and what the log says of it. */
export interface ChosenUdp {
  readonly kind: 'batch' | 'dgram'
  readonly description: string
}

/**
 * Chooses how UDP is served: in batches where the machine can (see `loadLibc`), else over node:dgram.
 * `forced` is the value of SEXTANT_UDP: `batch`, `dgram`, or undefined for the choice. Throws an
 * InputError for any other value, and where `batch` is forced and can't be had. `load` is for tests.
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
        'ENVIRONMENT',
        undefined,
        `SEXTANT_UDP is "${forced}": leave it out, or set it to batch or dgram`,
      )
  }
  try {
    load()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    if (forced !== 'batch') return { kind: 'dgram', description: `dgram (${reason})` }
    throw new InputError('ENVIRONMENT', undefined, `SEXTANT_UDP=batch: ${reason}`, error)
  }
  return { kind: 'batch', description: 'batch (recvmmsg)' }
}

/** Whether replies in batches go in groups, and what the log adds where they do not. */
export interface ChosenGrouping {
  readonly groups: boolean
  readonly description: string
}

/**
 * Chooses whether replies to the same peer go together: where the kernel can cut messages. `forced` is the value of
 * SEXTANT_GSO: `off`, or `on` or undefined for the choice. Throws an InputError for any other value. `cuts` is for tests.
 */
export function chooseGrouping(
  forced: string | undefined,
  cuts: () => boolean = () => cutsMessages(loadLibc()),
): ChosenGrouping {
  switch (forced) {
    case 'off':
      return { groups: false, description: ', replies one by one (SEXTANT_GSO)' }
    case undefined:
    case '':
    case 'on':
      break
    default:
      throw new InputError(
        'ENVIRONMENT',
        undefined,
        `SEXTANT_GSO is "${forced}": leave it out, or set it to on or off`,
      )
  }
  const groups = cuts()
  return { groups, description: groups ? '' : ', replies one by one (no UDP_SEGMENT)' }
}
