import { printType, RRType } from '../dns/iana/types.ts'
import { isSubdomain, lowerName } from '../dns/name/name.ts'
import { isWellFormed } from '../dns/rdata/index.ts'
import { ENDPOINTS_MAX } from '../records/dns-record.ts'
import { KDRNT_ZONE } from '../records/local-zone.ts'
import {
  DEFAULT_SET_IDENTIFIER,
  type EndpointObject,
  printHost,
  printSteering,
  printTarget,
  type SteeringText,
} from '../records/print-endpoint.ts'
import { validateEndpoint } from '../records/validate/dns-record.ts'
import { type OldGeo, type OldMetadata, readOldMetadata } from './old-metadata.ts'
import type { PeerEndpoint, SiteState } from './peer-endpoint.ts'
import { cutProblems } from './read-v2.ts'
import { sortUnique, toPeerEndpoint } from './to-peer-endpoint.ts'

/** What endpoints lose between a v1 peer and this site, in both directions. */
export const V1_LACKS =
  'v1 does not carry set identifiers, defaults, locations, annotations, drains, health and where it is probed; it carries geo codes only of CNAMEs whose target begins with the code'

/** A record from a peer's answer: names as uncompressed wire form, in any case. */
export interface PeerRecord {
  readonly owner: Uint8Array
  readonly type: number
  readonly ttlSeconds: number
  readonly rdata: Uint8Array
}

/** All answers of a v1 peer for one host. */
export interface OldAnswers {
  /**
   * Answers to A and AAAA of `<host>.kdrnt`, and of the names that they lead to: A, AAAA and CNAME.
   */
  readonly records: readonly PeerRecord[]
  /** TXT rdata of `w.` and `g.`, of all `metadataNames`. */
  readonly weights: readonly Uint8Array[]
  readonly geos: readonly Uint8Array[]
}

interface V1SiteState {
  readonly siteState: SiteState
  /** What was refused, and why; quotes the peer's text. At most ten lines, and how many more. */
  readonly problems: readonly string[]
}

type Found = Pick<EndpointObject, 'dnsName' | 'recordType' | 'targets' | 'recordTTL'>

const NO_STEERING: SteeringText = {
  setIdentifier: '',
  weight: undefined,
  geoCodes: [],
  isDefault: false,
}

/**
 * Returns the endpoints of one host as a v1 peer reports them. The addresses of one name are one
 * endpoint; each CNAME is one endpoint. A weight belongs to every endpoint of its name. A geo code
 * belongs to the CNAMEs that lead to a name whose first label is the code in lower case, or else
 * begins with it. v1 does not transfer set identifiers. They become `default`, the code, or, with a
 * weight, the target.
 *
 * `peer`: address of the peer, used as the site. `rootHost`: of our record, with its `*.`. Records
 * that are not at or below it are refused; the call still succeeds.
 */
export function readOldAnswers(
  answers: OldAnswers,
  place: { readonly peer: string; readonly rootHost: string; readonly seenMs: number },
): V1SiteState {
  const { peer: site, rootHost, seenMs } = place
  const metadata = readOldMetadata(answers.weights, answers.geos)
  const problems = metadata.problems.map((problem) => `${rootHost}: ${problem}`)
  const { length } = answers.records
  if (length > ENDPOINTS_MAX) {
    problems.push(`${rootHost}: ${length} records, only ${ENDPOINTS_MAX} are accepted`)
  }
  const endpoints: PeerEndpoint[] = []
  for (const found of gather(answers.records.slice(0, ENDPOINTS_MAX))) {
    const steering = steer(found, metadata)
    const checked = validateEndpoint({ ...found, ...printSteering(steering) }, rootHost)
    if ('problem' in checked) {
      problems.push(`${rootHost}: ${checked.problem.message}`)
      continue
    }
    const facts = { site, rootHost, health: 'unknown', sinceSeconds: 0 } as const
    endpoints.push(toPeerEndpoint(checked.endpoint, facts))
  }
  const about = { site, exporter: site, isOwn: true, rootHost, seenMs } as const
  return {
    siteState: { ...about, endpoints, generation: 'v1' },
    problems: cutProblems(problems, rootHost),
  }
}

/** Groups the answers, without `.kdrnt`: addresses by name and type, CNAMEs one by one. */
function gather(records: readonly PeerRecord[]): Found[] {
  const found = new Map<string, Found>()
  for (const { owner, type, ttlSeconds: recordTTL, rdata } of records) {
    const isName = type === RRType.CNAME
    if (!isName && type !== RRType.A && type !== RRType.AAAA) continue
    if (!isSubdomain(owner, KDRNT_ZONE) || !isWellFormed(type, rdata)) continue
    const dnsName = printLocal(owner)
    const recordType = printType(type)
    const target = isName ? printLocal(rdata) : printTarget(type, rdata)
    const key = `${dnsName} ${recordType} ${isName ? target : ''}`
    const known = found.get(key)
    const targets = sortUnique([...(known?.targets ?? []), target])
    const lowest = Math.min(recordTTL, known?.recordTTL ?? recordTTL)
    found.set(key, { dnsName, recordType, targets, recordTTL: lowest })
  }
  return [...found.values()]
}

/** Prints a name in lower case without its `.kdrnt`. */
function printLocal(name: Uint8Array): string {
  const lower = lowerName(name)
  if (!isSubdomain(lower, KDRNT_ZONE)) return printHost(lower)
  return printHost(Uint8Array.of(...lower.subarray(0, lower.length - KDRNT_ZONE.length), 0))
}

function steer({ dnsName, recordType, targets }: Found, metadata: OldMetadata): SteeringText {
  const weight = metadata.weights.get(dnsName)
  if (recordType !== 'CNAME') return { ...NO_STEERING, weight }
  const target = targets[0]!
  const geo = findGeo(target, metadata.geos)
  if (geo === undefined) {
    return { ...NO_STEERING, weight, setIdentifier: weight === undefined ? '' : target }
  }
  const { code, isDefault } = geo
  const setIdentifier = isDefault ? DEFAULT_SET_IDENTIFIER : code
  return { setIdentifier, weight, geoCodes: [code], isDefault }
}

/**
 * Returns the code that equals the target's first label; else the longest code that the target
 * begins with.
 */
function findGeo(target: string, geos: readonly OldGeo[]): OldGeo | undefined {
  const label = target.slice(0, `${target}.`.indexOf('.'))
  let best: OldGeo | undefined
  for (const geo of geos) {
    const start = geo.code.toLowerCase()
    if (label === start) return geo
    if (target.startsWith(start) && start.length > (best?.code.length ?? 0)) best = geo
  }
  return best
}
