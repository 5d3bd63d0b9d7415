import type { FleetServer } from '../../../../../plugin/admin-fleet.ts'

/** A zone, and its serial at each server that has it. */
export interface ComparedZone {
  readonly zone: string
  readonly directives: readonly string[]
  readonly serials: readonly { readonly server: string; readonly serial: number | null }[]
  /** `counted`: each server counts the serials of a zone of DNSRecords itself. */
  readonly state: 'same' | 'different' | 'counted' | 'not loaded'
  /** Servers that report their zones, and not this one. */
  readonly missing: readonly string[]
}

/** The directive whose serials count the changes of one process. */
const COUNTING = 'kuadrant'

/** The name of a server on the page. */
export function nameOf({ name, isSelf }: FleetServer): string {
  if (!isSelf) return name
  return name === '' ? 'this server' : `${name} (this server)`
}

/** Returns the zones of all servers, by name. */
export function compareZones(servers: readonly FleetServer[]): ComparedZone[] {
  const zones = new Map<
    string,
    { directives: Set<string>; serials: ComparedZone['serials'][number][] }
  >()
  for (const server of servers) {
    for (const { zone, directive, serial } of server.report?.zones ?? []) {
      const held = zones.get(zone) ?? { directives: new Set(), serials: [] }
      zones.set(zone, held)
      held.directives.add(directive)
      held.serials.push({ server: nameOf(server), serial })
    }
  }
  const complete = servers.filter(({ report }) => report !== null && report.zonesOmitted === 0)
  return [...zones].map(([zone, { directives, serials }]) => {
    const having = new Set(serials.map(({ server }) => server))
    return {
      zone,
      directives: [...directives],
      serials,
      state: stateOf(directives, serials),
      missing: complete.map(nameOf).filter((name) => !having.has(name)),
    }
  })
}

function stateOf(
  directives: ReadonlySet<string>,
  serials: ComparedZone['serials'],
): ComparedZone['state'] {
  if (serials.some(({ serial }) => serial === null)) return 'not loaded'
  if (directives.has(COUNTING)) return 'counted'
  return new Set(serials.map(({ serial }) => serial)).size > 1 ? 'different' : 'same'
}
