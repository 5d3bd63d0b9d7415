import { InputError } from '../../base/errors.ts'
import { printHostPort } from '../../dns/host-port.ts'
import { isSubdomain, nameKey } from '../../dns/name/name.ts'
import type { Cidr } from '../../dns/text/address.ts'
import type { AnswerExplainer } from '../../plugin/answer-explainer.ts'
import { COUNTS_TRAFFIC } from '../../plugin/counts-traffic.ts'
import type { CheckHook, Description, DirectivePart } from '../../plugin/description.ts'
import type { BlockConfig, Directive, SetupContext } from '../../plugin/directive.ts'
import type { Handler, HandlerFactory } from '../../plugin/handler.ts'
import type { PublisherGroup } from '../../publish/publisher-group.ts'
import { ThreadedZones } from '../../publish/serve/threaded-zones.ts'
import { faultAt } from '../../publish/source-fault.ts'
import { isLocalZone, KDRNT_ZONE } from '../../records/local-zone.ts'
import { type SignedZone, ZONE_SIGNING } from '../../signing/registry.ts'
import { nameOf } from '../../sources/source-place.ts'
import { ZoneSet } from '../../zone/lookup/zone-set.ts'
import { prepareService } from './block-service.ts'
import { conflictWith } from './conflicts.ts'
import { ExplainNames } from './explain-names.ts'
import { KuadrantHandler } from './kuadrant.ts'
import { KUADRANT_BLOCKS } from './kuadrant-blocks.ts'
import { findIdleRights } from './namespace-rights.ts'
import { draftOptions, type KuadrantOptions, scanOptions } from './options.ts'
import { TakesNotify } from './takes-notify.ts'
import { threadCounts } from './thread-counts.ts'

/** Endpoints in tiers whose answers are counted for the console. */
const ENDPOINT_HISTORY_MAX = 10_000

/** `kuadrant`: zones built from DNSRecords. */
export const kuadrant: Directive = {
  name: 'kuadrant',
  setup(c) {
    const { drafts, byBlock, group } = c.shared.acquire(KUADRANT_BLOCKS)
    const draft = draftOptions(c.dispenser)
    drafts.push(draft)
    // Registered before the scan, so that an invalid property does not hide faults of the manifests.
    let isScanned = false
    const check: CheckHook = async (report) => {
      if (!isScanned && !draft.hasSource) return []
      for (const own of await findOwnPeers(c, draft, byBlock)) report.warn(own)
      const { checkBlock } = await import('./check.ts')
      return checkBlock(draft, drafts, report, c).catch(faultAt(draft.position))
    }
    try {
      const endpointHistory = c.shared.find(COUNTS_TRAFFIC) && ENDPOINT_HISTORY_MAX
      const scanned = scanOptions(c, draft)
      const options = { ...scanned, endpointHistory, signed: claimSigned(c, scanned.zones) }
      isScanned = true
      byBlock.set(c.block, options)
      const conflict = conflictWith(options, group.options)
      if (conflict !== '') throw c.dispenser.error(conflict)
      return [
        { check, start: () => warnOfOwn(c, options, byBlock) },
        serve(c, options, drafts, group),
      ]
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      // An invalid property does not hide faults of the manifests.
      return { check, fault: error }
    }
  },
}

async function warnOfOwn(
  c: SetupContext,
  options: KuadrantOptions,
  byBlock: ReadonlyMap<BlockConfig, KuadrantOptions>,
): Promise<void> {
  for (const own of await findOwnPeers(c, options, byBlock))
    c.log.warning(own.print(), 'peer-is-own-address')
}

/** Finds peers that are this server: they report the records that it reads itself. */
async function findOwnPeers(
  c: SetupContext,
  { peering: { peers, position }, source }: KuadrantOptions,
  byBlock: ReadonlyMap<BlockConfig, KuadrantOptions>,
): Promise<InputError[]> {
  const blocks = await Promise.all(peers.map((peer) => c.findOwnBlock(peer, KDRNT_ZONE)))
  return peers.flatMap((peer, i) => {
    const other = blocks[i] && byBlock.get(blocks[i])
    if (other === undefined || nameOf(other.source) !== nameOf(source)) return []
    const message = `peer ${printHostPort(peer)} is this server, which reports the records of this site; remove it`
    return [new InputError(position, message)]
  })
}

function serve(
  c: SetupContext,
  options: KuadrantOptions,
  all: readonly KuadrantOptions[],
  group: PublisherGroup,
): Description {
  const { endpointMetrics, endpointHistory, explainFor, fallthrough } = options
  const explaining = explainFor.length > 0 ? explainNames(c, explainFor) : []
  const most = endpointMetrics ?? endpointHistory
  const counts = most === undefined ? undefined : threadCounts(c, most)
  const threads = new ThreadedZones(c, counts?.own)
  const signed = new ZoneSet(options.zones.filter((zone) => options.signed?.has(nameKey(zone))))
  const nested = new ZoneSet(
    signed.zones.filter((zone) =>
      options.zones.some((one) => one !== zone && isSubdomain(zone, one)),
    ),
  )
  const handler = (next: Handler): Handler => {
    return new KuadrantHandler(next, threads, fallthrough, signed, nested)
  }
  const isLocal = options.zones.some(isLocalZone)
  const answering = isLocal ? takeNotify(c, group, handler) : { handler, answers: true }
  const link = (): void => {
    for (const { position, message } of findIdleRights(options, all)) c.warn(message, position!)
  }
  const service = prepareService(c, options, { threads, group, counts })
  return [explaining, answering, service, { link }]
}

/** Finds the zones that are signed, by `nameKey`. The zone `kdrnt` is data for peers, and never signed. */
function claimSigned(
  { block }: SetupContext,
  zones: readonly Uint8Array[],
): ReadonlyMap<string, SignedZone> {
  const claimed = new Map<string, SignedZone>()
  for (const zone of zones.filter((zone) => !isLocalZone(zone))) {
    const signed = block.shared.find(ZONE_SIGNING)?.of(zone)
    signed?.claim()
    if (signed !== undefined) claimed.set(nameKey(zone), signed)
  }
  return claimed
}

/** Returns the part that answers, and passes NOTIFYs of peers to the group. */
function takeNotify(
  c: SetupContext,
  group: PublisherGroup,
  handlerOf: HandlerFactory,
): DirectivePart {
  const report = c.toControl((host) => group.notify(host))
  return {
    handler: (next) => new TakesNotify(handlerOf(next), next, report),
    seesNotify: true,
    answers: true,
    link: () => {
      const hasPeers = group.options.some(({ peering }) => peering.peers.length > 0)
      if (hasPeers) c.block.takesNotify = true
    },
  }
}

function explainNames(c: SetupContext, networks: readonly Cidr[]): DirectivePart {
  let explainer: AnswerExplainer | undefined
  let isOver = false
  let without: 'not open' | 'elsewhere' = 'elsewhere'
  const serving = (): void => {
    const open = async (): Promise<void> => {
      explainer = await c.openExplainer()
      if (isOver) explainer?.close()
    }
    open().catch((error) => {
      c.log.error(
        `explanations are off: ${error instanceof Error ? error.message : error}`,
        'explanations-off',
      )
    })
  }
  return {
    handler: (next) => new ExplainNames(next, networks, () => explainer ?? without),
    start: () => {
      without = 'not open'
    },
    serving,
    stop: () => {
      isOver = true
      explainer?.close()
    },
  }
}
