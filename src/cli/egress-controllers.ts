import type { Controller, ControllerMeans } from '../operator/controller.ts'
import type { Flag, Get } from './flag-values.ts'

/** The names of the operator's controllers, for `--controllers`. */
export const CONTROLLERS = ['dnsrecord'] as const

/** Settings of the controllers for egress policies. */
export type EgressArgs = Readonly<Record<string, never>>

/** Flags of the controllers for egress policies, in the order of the help. */
export const EGRESS_FLAGS: readonly Flag[] = []

/** Reads the values of EGRESS_FLAGS. Throws BadValue. */
export function readEgressArgs(_get: Get): EgressArgs {
  return {}
}

/** Makes the controllers for egress policies that are switched on. */
export function createEgressControllers(
  _names: ReadonlySet<string>,
  _args: EgressArgs,
  _means: ControllerMeans,
): readonly Controller[] {
  return []
}
