import type { HostSlowStart } from './slow-start.ts'
import {
  elapsedSince,
  printSlowStarts,
  SLOW_START_STATE,
  type SlowStartState,
} from './slow-start-text.ts'
import { SourcesFile, type SourcesFileOptions } from './sources-file.ts'

/** Stores slow starts over a restart, for all sources with the same file. */
export class SlowStartFile extends SourcesFile<HostSlowStart, SlowStartState> {
  constructor(options: SourcesFileOptions) {
    const { clock } = options
    super(options, {
      kind: SLOW_START_STATE,
      print: (hosts) => {
        const nowMs = clock.monotonic()
        const addresses = hosts.flatMap(({ key, hostKey, sinceMs }) =>
          [...sinceMs].map(([address, cameMs]) => {
            return { key, hostKey, address, elapsedMs: Math.max(0, nowMs - cameMs) }
          }),
        )
        return printSlowStarts({ writtenMs: clock.now(), addresses })
      },
      restore: ({ writtenMs, addresses }) => {
        const nowMs = clock.monotonic()
        return addresses.map((one) => {
          const elapsedMs = elapsedSince(one, writtenMs, clock.now())
          const sinceMs = new Map([[one.address, nowMs - elapsedMs]])
          return { key: one.key, hostKey: one.hostKey, sinceMs }
        })
      },
    })
  }
}
