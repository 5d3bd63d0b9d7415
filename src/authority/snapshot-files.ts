import { lazyKey } from '../base/shared-values.ts'
import type { SetupContext } from '../plugin/directive.ts'

/** Paths that the directives of a Corefile keep snapshots at. */
const SNAPSHOTS = lazyKey('snapshots of zone files', () => new Set<string>())

/** Claims a path for the snapshots of one directive. Returns false if another one has it. */
export function claimSnapshot({ shared }: Pick<SetupContext, 'shared'>, path: string): boolean {
  const paths = shared.acquire(SNAPSHOTS)
  const isFree = !paths.has(path)
  paths.add(path)
  return isFree
}
