import { LineBuffer } from '../../src/base/telemetry/lines.ts'

/** A buffer whose lines are in `lines` at once. */
export function lineBufferTo(lines: string[]): LineBuffer {
  return new LineBuffer(
    {
      isBusy: () => false,
      write: (octets) => {
        lines.push(...octets.toString().split('\n').slice(0, -1))
      },
    },
    (run) => run(),
  )
}
