import { endpointDocument } from '../imported-endpoint.ts'
import type { ImportedHosts } from '../imported-hosts.ts'
import type { Group, Stage } from './resources.ts'

/** Names of stages in order of preference. */
export type StageList = readonly string[]

/** Which clients get which stages of a host. */
interface SteeringPlan {
  readonly host: string
  readonly ttlSeconds: number
  readonly place: string
  readonly stages: ReadonlyMap<string, Stage>
  readonly byDefault: StageList
  /** By geo code. */
  readonly lists: ReadonlyMap<string, StageList>
  /** Places of stages, for clients that no geo code matches; empty = `byDefault` decides. */
  readonly locations: ReadonlyMap<string, string>
}

const FALLBACK_CODE = 'NET-FALLBACK-'
const FAILOVER = 'sextant.io/failover'

/** Adds the endpoints of a host, and its failover list. */
export function addPlan(plan: SteeringPlan, hosts: ImportedHosts): void {
  const { host, place, stages, byDefault, lists, locations } = plan
  const codes = codesOfStages(plan, hosts)
  const used = new Set([byDefault, ...lists.values(), [...locations.keys()]].flat())
  const isPair = isStandbyPair(plan)
  const entries = new Map<string, string>()
  for (const [name, stage] of stages) {
    if (!used.has(name)) continue
    const own = codes.get(name)!
    const isFirst = byDefault[0] === name
    const isIdle = own.length === 0 && !isFirst && !locations.has(name)
    const isLone = isIdle && hasLoneGroups(stage.groups)
    if (isIdle && !isLone) own.push(addFallbackCode(plan, name, hosts))
    const isDefault = isFirst && !isPair
    entries.set(name, own[0] ?? (isDefault ? '*' : name))
    addClients(plan, stage, { geoCodes: own, isDefault, isLone }, hosts)
  }
  noteTypes(plan, used, hosts)
  const lines = isPair ? [] : failoverLines(plan, entries)
  if (lines.length > 0) hosts.annotate(host, FAILOVER, lines.join('\n'), place)
}

/** Returns the geo codes whose lists begin with each stage. */
function codesOfStages(
  { place, stages, lists }: SteeringPlan,
  hosts: ImportedHosts,
): ReadonlyMap<string, string[]> {
  const codes = new Map<string, string[]>([...stages.keys()].map((name) => [name, []]))
  for (const [code, list] of lists) {
    const [first] = list
    if (first === undefined)
      hosts.note(
        place,
        `clients of ${code} get an empty answer in gdnsd, and the default endpoint in Sextant`,
      )
    else codes.get(first)?.push(code)
  }
  return codes
}

/** Returns the code of a custom net without networks, by which only failover lists find the stage. */
function addFallbackCode(
  { host, place }: SteeringPlan,
  name: string,
  hosts: ImportedHosts,
): string {
  const label = name.toUpperCase().replace(/[^0-9A-Z_-]/g, '-')
  const code = FALLBACK_CODE + label.slice(0, 50)
  hosts.note(
    place,
    `${host}: ${code} is only for failover lists: no client has this geo code, and sextant check warns of it`,
  )
  return code
}

/** A stage with a location and geo codes becomes two endpoints: clients of its codes do not choose by distance. */
function addClients(
  plan: SteeringPlan,
  stage: Stage,
  clients: StageClients & { readonly geoCodes: readonly string[] },
  hosts: ImportedHosts,
): void {
  const { geoCodes, isDefault } = clients
  const location = plan.locations.get(stage.name)
  if (location === undefined) {
    addStage(plan, stage, clients, hosts)
    return
  }
  const suffix = geoCodes.length > 0 ? '-auto' : ''
  if (suffix !== '') addStage(plan, stage, { ...clients, isDefault: false }, hosts)
  addStage(plan, stage, { isDefault, location, suffix }, hosts)
}

interface StageClients {
  readonly geoCodes?: readonly string[]
  readonly isDefault: boolean
  readonly location?: string
  readonly isLone?: boolean
  readonly suffix?: string
}

function addStage(
  { host, ttlSeconds, place, stages }: SteeringPlan,
  { name, groups }: Stage,
  { isLone = false, suffix = '', ...clients }: StageClients,
  hosts: ImportedHosts,
): void {
  const isPlain = stages.size === 1 && clients.location === undefined
  const seen = new Map<string, number>()
  for (const { type, targets, weight } of groups) {
    const index = (seen.get(type) ?? 0) + 1
    seen.set(type, index)
    const isOne = groups.filter((group) => group.type === type).length === 1
    const steering = {
      ...clients,
      // One stage serves all clients.
      isDefault: clients.isDefault && !isPlain,
      setIdentifier: isOne ? (isPlain ? '' : `${name}${suffix}`) : `${name}${suffix}-${index}`,
      weight: isLone ? 0 : isOne ? undefined : weight,
    }
    hosts.add(endpointDocument({ host, type, targets, ttlSeconds, ...steering }), place)
  }
}

/** A stage without addresses of a family: gdnsd has an empty answer, and Sextant chooses among those of the type. */
function noteTypes(
  { host, place, stages }: SteeringPlan,
  used: ReadonlySet<string>,
  hosts: ImportedHosts,
): void {
  const served = [...stages.values()].filter(({ name }) => used.has(name))
  const types = new Set(served.flatMap(({ groups }) => groups.map(({ type }) => type)))
  for (const { name, groups } of served) {
    for (const type of types) {
      if (groups.some((group) => group.type === type)) continue
      const message = `${host}: ${name} has no ${type}: its clients get an empty answer in gdnsd, and another endpoint in Sextant`
      hosts.note(place, message)
    }
  }
}

/** True for a primary and a standby, which weights express. */
function isStandbyPair({ stages, lists, locations }: SteeringPlan): boolean {
  const [, second, third] = [...stages.values()]
  const isPlain = lists.size === 0 && locations.size === 0 && third === undefined
  return isPlain && second !== undefined && hasLoneGroups(second.groups)
}

function hasLoneGroups(groups: readonly Group[]): boolean {
  return new Set(groups.map(({ type }) => type)).size === groups.length
}

/** `entries`: the entry of each stage. */
function failoverLines(
  { byDefault, lists, locations }: SteeringPlan,
  entries: ReadonlyMap<string, string>,
): string[] {
  const entriesOf = (list: StageList): string => {
    return [...new Set(list.slice(1).map((name) => entries.get(name)!))].join(', ')
  }
  // A line * would come before the distance.
  const rest = locations.size > 0 ? '' : entriesOf(byDefault)
  const lines = [...lists].map(([code, list]) => [code, entriesOf(list)] as const)
  // The line * is for all codes without a line of their own.
  const own = lines.filter(([, line]) => line !== '' && line !== rest)
  return [...own, ...(rest === '' ? [] : [['*', rest] as const])].map(([code, line]) => {
    return `${code}: ${line}`
  })
}
