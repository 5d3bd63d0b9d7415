import type { BlockConfig } from './directive.ts'

/**
 * Returns a name for the server block that distinguishes it from others: its keys, its addresses,
 * its view.
 */
export function placeOf({ keys, listenHosts, viewName }: BlockConfig): string {
  const addresses = keys.map(({ scheme, zoneText, port }) => `${scheme}://${zoneText}:${port}`)
  const hosts = [...listenHosts].sort().join()
  return `${addresses.sort().join()}@${hosts}/${encodeURIComponent(viewName)}`
}
