import type { Refused } from './trust/screen-site-states.ts'

/** What is wrong with what peers report of a host. */
export interface HostTroubles {
  readonly conflicts: readonly string[]
  readonly refused: readonly Refused[]
}

export const NO_TROUBLES: HostTroubles = { conflicts: [], refused: [] }

/** Returns the lines for the log. */
export function textsOf({ conflicts, refused }: HostTroubles): readonly string[] {
  return [
    ...conflicts.map((text) => `conflict with another site: ${text}`),
    ...refused.map(({ peer, text }) => `peer ${peer}: refused: ${text}`),
  ]
}
