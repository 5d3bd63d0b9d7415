import { InputError } from '../../../../base/errors.ts'
import { loadLibc } from '../libc.ts'
import { cutsMessages } from './udp-segment.ts'

/** Whether replies in batches are grouped; if not, what the log adds. */
interface ChosenGrouping {
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
