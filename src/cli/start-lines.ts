import type { ListenPlan } from '../server/listen-plan.ts'

/** RFC 1035 section 2.3.1: labels of letters, digits and inner hyphens that start with a letter. */
const PREFERRED_SYNTAX = /^(?:[a-z](?:[a-z0-9-]*[a-z0-9])?\.)+$/
const REVERSE_ZONE = /(?:^|\.)(?:in-addr|ip6)\.arpa\.$/

/**
 * The output of CoreDNS at start, sorted: `[scheme://]zone:port[ on IP]` for every zone. A warning
 * precedes each zone whose name has not the preferred syntax of RFC 1035.
 */
export function startLines(plans: readonly ListenPlan[]): string[] {
  const warnings = new Map<string, string>()
  for (const { blocks, host, port } of plans) {
    for (const { zoneText } of blocks) {
      const line = `${zoneText}:${port}${host === '' ? '' : ` on ${host}`}`
      warnings.set(line, isPreferred(zoneText) ? '' : warning(zoneText))
    }
  }
  return [...warnings]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([line, warning]) => (warning === '' ? [line] : [warning, line]))
}

function isPreferred(zoneText: string): boolean {
  return zoneText === '.' || REVERSE_ZONE.test(zoneText) || PREFERRED_SYNTAX.test(zoneText)
}

function warning(zoneText: string): string {
  return `Warning: Domain ${JSON.stringify(zoneText)} does not follow RFC1035 preferred syntax`
}
