import { type EndpointHealth, printTargets, type TargetTexts } from '../../peering/peer-endpoint.ts'
import { toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import type { Publishing } from '../plan/decide.ts'
import type { StatusFields } from './status-fields.ts'

/** Addresses that `status.down` names. */
const NAMED_MAX = 5

/** How many targets of a record are served. */
export interface TargetCounts {
  readonly served: number
  /** All targets that are known, in service or not. */
  readonly total: number
  /** Targets that are down, served or not. */
  readonly down: readonly string[]
}

interface WithHealth extends TargetTexts {
  readonly health: EndpointHealth
}

/**
 * Counts the targets that are `served` of all that sites have `reported`. A target that two sites
 * report counts once.
 */
export function countEndpoints(
  reported: readonly WithHealth[],
  served: readonly WithHealth[],
): TargetCounts {
  const working = identify(served.filter(({ health }) => health !== 'down'))
  const down = reported.filter(({ health }) => health === 'down')
  const isWorking = ({ dnsName, recordType }: TargetTexts, target: string): boolean =>
    working.has(identityOf(dnsName, recordType, target))
  return {
    served: identify(served).size,
    total: identify([...reported, ...served]).size,
    down: down.flatMap((one) => one.targets.filter((target) => !isWorking(one, target))),
  }
}

/** All targets of our own record, once with those that are down. */
export function listOwnTargets(
  { content }: Pick<Publishing, 'content'>,
  down: readonly string[],
): readonly WithHealth[] {
  const all = toPeerEndpoints(content, { site: '', key: '', down: [], up: [], sinceSeconds: 0 })
  return all.flatMap(({ endpoint, health }) => {
    const one = { ...printTargets(endpoint), health }
    const targets = one.targets.filter((target) => down.includes(target))
    return [one, { ...one, targets, health: 'down' as const }]
  })
}

export function countTargets(endpoints: readonly TargetTexts[]): number {
  return identify(endpoints).size
}

/** The fields for the columns of `kubectl get`: `served: 3/4`, and `down` while some target is. */
export function printCounts({ served, total, down }: TargetCounts): StatusFields {
  const names = [...new Set(down)].sort()
  const more = names.length > NAMED_MAX ? ` and ${names.length - NAMED_MAX} more` : ''
  const shown = names.length === 0 ? undefined : names.slice(0, NAMED_MAX).join(' ') + more
  return { served: `${served}/${total}`, down: shown }
}

function identify(endpoints: readonly TargetTexts[]): ReadonlySet<string> {
  return new Set(
    endpoints.flatMap(({ dnsName, recordType, targets }) =>
      targets.map((target) => identityOf(dnsName, recordType, target)),
    ),
  )
}

function identityOf(dnsName: string, recordType: string, target: string): string {
  return JSON.stringify([dnsName, recordType, target])
}
