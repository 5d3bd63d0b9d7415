import type { BypassKind } from './bypass.ts'

/**
 * Every bypass, by the directive that asks for it; few servers use one. A line can be removed together
 * with the folders of its bypass.
 */
export const BYPASSES: Readonly<Record<string, () => Promise<BypassKind>>> = {
  xdp: async () => (await import('./xdp/bypass.ts')).xdp,
}
