import type { Position } from '../base/errors.ts'
import type { Cidr } from '../dns/text/address.ts'
import type { ConfigMapPlace } from '../sources/kubernetes/cluster-drains.ts'

/** How the health of addresses is found and applied. */
export interface HealthOptions {
  /** Undefined = this server does not probe; `off` = not even because there are peers. */
  readonly probe: ProbeOptions | 'off' | undefined
  /** Networks that are refused by default but may be probed, as written. */
  readonly allowed: readonly { readonly text: string; readonly cidr: Cidr }[]
  /** Program and arguments of each command that health checks may name; undefined = none. */
  readonly commands?: ReadonlyMap<string, readonly string[]> | undefined
  /** Time until a recovered address has its full weight; 0 = at once. */
  readonly slowStartMs: number
  /** File that keeps slow starts over a restart; undefined = they are not kept. */
  readonly slowStartFile?: KeptFile | undefined
  /** File of the drains; undefined = nothing is drained. */
  readonly drainFile?: KeptFile | undefined
  /** Annotations of Namespaces drain their records. Missing = false. */
  readonly readsNamespaces?: boolean | undefined
  /** ConfigMap of drains for all servers of the cluster; undefined = none. */
  readonly drainsPlace?: ConfigMapPlace | undefined
  /** File that keeps shifts over a restart; undefined = they are not kept. */
  readonly shiftFile?: KeptFile | undefined
}

/** A file that a property names. */
export interface KeptFile {
  /** Absolute path. */
  readonly path: string
  readonly position: Position
}

interface ProbeOptions {
  /** Absolute path of the file that keeps probe results; '' = none. */
  readonly file: string
  readonly position: Position
  /** It probes because the block has peers. What another block with the same records says has precedence. */
  readonly isDefault?: boolean
}

export const NO_HEALTH: HealthOptions = { probe: undefined, allowed: [], slowStartMs: 0 }

/** Prints the probe options: equal text for equal options. */
export function printProbing({ probe, allowed, commands = new Map() }: HealthOptions): string {
  if (probe === undefined || probe === 'off') return ''
  const networks = allowed.map(({ text }) => text).sort()
  return [probe.file, ...networks, JSON.stringify([...commands].sort())].join(' ')
}
