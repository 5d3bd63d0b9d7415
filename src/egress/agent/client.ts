import type { ClientRules } from '../rules/rule.ts'

/** A Pod of this node that some policy selects. */
export interface Client {
  /** Differs between two Pods that have had one address: `namespace/name/uid`. */
  readonly id: string
  /** In canonical form, at most one of each family. */
  readonly addresses: readonly string[]
  readonly rules: ClientRules
}
