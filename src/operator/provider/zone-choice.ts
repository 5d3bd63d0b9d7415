/** The zone of a record, or why it has none. */
type ZoneChoice = { readonly zone: string } | { readonly problem: string }

/**
 * The zone that ends `host` by whole labels; the longest of several. `host` and `zones`: lower case, without
 * a final dot, `host` without a leading `*.`.
 */
export function chooseZone(host: string, zones: readonly string[]): ZoneChoice {
  for (let zone = host; zone !== ''; zone = zone.slice(zone.indexOf('.') + 1)) {
    const found = zones.filter((one) => one === zone).length
    if (found > 1) return { problem: `multiple zones found for host: ${host} (${zone})` }
    if (found === 1) return { zone }
    if (!zone.includes('.')) break
  }
  return { problem: `no zone for host: ${host}` }
}
