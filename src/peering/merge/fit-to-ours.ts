import type { PeerEndpoint } from '../peer-endpoint.ts'
import { contentKey, isAlias, isPlaced, isPlain } from './content.ts'
import type { MergeConflict } from './merged-endpoint.ts'
import { groupBy, isOurs, type Part } from './part.ts'

/** Most targets that one peer may add to a set without weights. */
const EVEN_TARGETS_MAX = 16

/** Changes an endpoint of a peer; undefined = it is left out. */
type Fit = (endpoint: PeerEndpoint) => PeerEndpoint | undefined

/**
 * Adapts the parts of peers to our own parts of the same name and type, so that peers only add to our answers:
 *
 * - An alias of ours without set identifier is the only one of its name.
 * - Weights and locations of peers count if all of ours have one, geo codes and defaults if all of ours have some.
 * - The default of ours is the only one.
 * - One peer adds at most 16 targets where ours have no weights.
 *
 * The other site finds the same conflict and keeps its own. `parts`: in order (`compareParts`).
 * `label`: name and type, for `conflicts`.
 */
export function fitToOurs(
  parts: readonly Part[],
  label: string,
  conflicts: MergeConflict[],
): readonly Part[] {
  const ours = parts.filter(isOurs).map(({ endpoint }) => endpoint)
  const others = parts.filter((part) => !isOurs(part))
  const equal = new Set(ours.map(identityOf))
  const named = new Set(ours.map((endpoint) => endpoint.setIdentifier))
  const steps = others.length === 0 ? [] : stepsOf(ours)
  const noted = new Set<string>()
  const note = (site: string, text: string): void => {
    if (noted.has(text)) return
    noted.add(text)
    conflicts.push({ site, text: `${label}: ${text}` })
  }
  const fitted = others.flatMap((part): Part[] => {
    if (equal.has(identityOf(part.endpoint))) return [part]
    let endpoint: PeerEndpoint | undefined = part.endpoint
    for (const { isDispute, text, fit } of steps) {
      if (endpoint === undefined || !isDispute(endpoint, part)) continue
      note(part.endpoint.site, text(part.endpoint.site))
      endpoint = fit(endpoint)
    }
    if (endpoint === undefined) return []
    return [{ ...part, endpoint: rename(endpoint, part.endpoint, named) }]
  })
  const isEven = !ours.every(hasWeight)
  const kept = isEven ? limitTargets(fitted, ours, note) : fitted
  return [...parts.filter(isOurs), ...kept]
}

interface Step {
  readonly isDispute: (endpoint: PeerEndpoint, part: Part) => boolean
  readonly text: (site: string) => string
  readonly fit: Fit
}

const keepIt: Fit = (endpoint) => endpoint
const leaveOut: Fit = () => undefined

function stepsOf(ours: readonly PeerEndpoint[]): readonly Step[] {
  const hasPlainAlias = ours.some((endpoint) => isAlias(endpoint) && isPlain(endpoint))
  const allWeighted = ours.every(hasWeight)
  const someWeighted = ours.some(hasWeight)
  const allPlaced = ours.every(isPlaced)
  const somePlaced = ours.some(isPlaced)
  const allLocated = ours.every(hasLocation)
  const someLocated = ours.some(hasLocation)
  const hasDefault = ours.some((endpoint) => endpoint.isDefault)
  return [
    {
      // v1 does not report set identifiers.
      isDispute: (endpoint, { generation }) =>
        isAlias(endpoint) && (hasPlainAlias || (isPlain(endpoint) && generation === 'v2')),
      text: (site) => `the CNAME of ${site} is not served beside our endpoints`,
      fit: leaveOut,
    },
    {
      isDispute: (endpoint) => !allWeighted && hasWeight(endpoint),
      text: (site) => `weights of ${site} are ignored: not all of our endpoints have one`,
      fit: (endpoint) => ({ ...endpoint, weight: undefined }),
    },
    {
      isDispute: (endpoint) => someWeighted && !hasWeight(endpoint),
      text: (site) => `endpoints of ${site} have no weight, but ours do`,
      fit: keepIt,
    },
    {
      isDispute: (endpoint) => !allPlaced && isPlaced(endpoint),
      text: (site) => `geo codes of ${site} are ignored: not all of our endpoints have one`,
      fit: (endpoint) => ({ ...endpoint, geoCodes: [], isDefault: false }),
    },
    {
      isDispute: (endpoint) => somePlaced && !isPlaced(endpoint),
      text: (site) => `endpoints of ${site} have no geo code, but ours do`,
      fit: keepIt,
    },
    {
      isDispute: (endpoint) => !allLocated && hasLocation(endpoint),
      text: (site) => `locations of ${site} are ignored: not all of our endpoints have one`,
      fit: ({ location: _, ...endpoint }) => endpoint,
    },
    {
      isDispute: (endpoint) => someLocated && !hasLocation(endpoint),
      text: (site) => `endpoints of ${site} have no location, but ours do`,
      fit: keepIt,
    },
    {
      isDispute: (endpoint) => endpoint.isDefault && hasDefault,
      text: (site) => `the default of ${site} differs from ours: ours is used`,
      fit: (endpoint) =>
        endpoint.geoCodes.length === 0 ? undefined : { ...endpoint, isDefault: false },
    },
  ]
}

/**
 * An endpoint that is no longer the default is named by its geo codes, if its set identifier is `default` or one of
 * ours: the identifier `default` would make it the default again.
 */
function rename(
  endpoint: PeerEndpoint,
  before: PeerEndpoint,
  named: ReadonlySet<string>,
): PeerEndpoint {
  const wasDefault = before.isDefault && !endpoint.isDefault && endpoint.geoCodes.length > 0
  const { setIdentifier } = endpoint
  if (!wasDefault || !(setIdentifier === 'default' || named.has(setIdentifier))) return endpoint
  return { ...endpoint, setIdentifier: endpoint.geoCodes.join() }
}

function limitTargets(
  others: readonly Part[],
  ours: readonly PeerEndpoint[],
  note: (site: string, text: string) => void,
): readonly Part[] {
  const known = new Set(ours.flatMap(({ targets }) => targets))
  const reported = new Set(others.flatMap(({ endpoint }) => endpoint.targets))
  const ownOnly = [...known].filter((target) => !reported.has(target))
  if (others.length > 0 && ownOnly.length > EVEN_TARGETS_MAX) {
    const site = ours[0]!.site
    note(
      site,
      `other sites serve only ${EVEN_TARGETS_MAX} of the targets of ${site} without weights`,
    )
  }
  return [...groupBy(others, ({ exporter }) => exporter).values()].flatMap((parts) => {
    const taken = new Set<string>()
    return parts.flatMap((part): Part[] => {
      const targets = part.endpoint.targets.filter((target) => {
        if (known.has(target) || taken.has(target)) return true
        if (taken.size >= EVEN_TARGETS_MAX) return false
        taken.add(target)
        return true
      })
      if (targets.length === part.endpoint.targets.length) return [part]
      const { site } = part.endpoint
      note(site, `only ${EVEN_TARGETS_MAX} of the targets of ${site} without weights are served`)
      return targets.length === 0 ? [] : [{ ...part, endpoint: { ...part.endpoint, targets } }]
    })
  })
}

function hasLocation({ location }: Pick<PeerEndpoint, 'location'>): boolean {
  return location !== undefined
}

function hasWeight({ weight }: PeerEndpoint): boolean {
  return weight !== undefined
}

/** What an endpoint is apart from its site, TTL, age and health. */
function identityOf(endpoint: PeerEndpoint): string {
  return `${endpoint.setIdentifier} ${contentKey(endpoint)}`
}
