import { InputError } from '../../base/errors.ts'
import { loadLibc } from './batch/libc.ts'
import { cutsMessages } from './batch/udp-segment.ts'

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

/** Whether replies in batches are grouped; if not, what the log adds. */
export interface ChosenGrouping {
  readonly groups: boolean
  readonly description: string
}

/**
 * Chooses whether replies to the same peer are grouped: if the kernel can segment messages.
 * `forced` is the value of SEXTANT_GSO: `off`, or `on` or undefined for automatic choice. Throws an
 * InputError for any other value. `cuts` is for tests.
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
        undefined,
        `SEXTANT_GSO is "${forced}"; unset it, or set it to on or off`,
      )
  }
  const groups = cuts()
  return { groups, description: groups ? '' : ', replies one by one (no UDP_SEGMENT)' }
}
