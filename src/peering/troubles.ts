import type { Refused } from './trust/screen-site-states.ts'

/** What is wrong with what peers report of a host. */
export interface HostTroubles {
  /** Endpoints that are invalid, or for which the host has no room. A line may stand for several of one site. */
  readonly unserved: readonly string[]
  readonly refused: readonly Refused[]
}

export const NO_TROUBLES: HostTroubles = { unserved: [], refused: [] }

/** Returns the lines for the log. */
export function textsOf({ unserved, refused }: HostTroubles): readonly string[] {
  return [
    ...unserved.map((text) => `endpoints of another site are not served: ${text}`),
    ...refused.map(({ peer, text }) => `peer ${peer}: refused: ${text}`),
  ]
}
