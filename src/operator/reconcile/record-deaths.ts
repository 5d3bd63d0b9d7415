import type { Clock } from '../../base/clock.ts'
import { LineBudget } from '../../base/telemetry/line-budget.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import { UNKNOWN_HEALTH } from '../../health/address-health.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import { type DeathRules, ifSiteDies } from '../../peering/deaths/if-site-dies.ts'
import { oldestAllDown } from '../../peering/deaths/oldest-all-down.ts'
import type { SiteState } from '../../peering/peer-endpoint.ts'
import { bareHost } from '../../peering/peer-status.ts'
import { toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import type { KnownPeer } from '../peers/peer-state-store.ts'
import type { Publishing } from '../plan/decide.ts'
import { shortHash } from '../record/short-hash.ts'
import type { OperatorSettings } from '../settings.ts'

/** Lines within a period, over all hosts. */
const LINES_MAX = 20
const PERIOD_MS = 60_000

/** What the settings of the operator decide about the death of sites. */
type OperatorDeathRules = Omit<DeathRules, 'site' | 'sites' | 'knowsOthers'>

export function operatorDeathRules({
  probing,
  probesPeers,
  silentMs,
  quorum,
  holdDownMs,
}: Pick<
  OperatorSettings,
  'probing' | 'probesPeers' | 'silentMs' | 'quorum' | 'holdDownMs'
>): OperatorDeathRules {
  const flag = probing === undefined ? 'enable-probes' : 'probe-peers'
  return {
    silentMs,
    unprobed: probing === undefined || !probesPeers ? `${flag} is false` : '',
    quorum,
    holdDownMs,
    policy: new ProbePolicy(probing?.allowed ?? []),
    commands: new Set(),
    // The nameservers have it.
    allDown: undefined,
  }
}

interface KnownHost {
  /** The records of this cluster that are published for the host. */
  readonly records: () => readonly Pick<Publishing, 'record' | 'content'>[]
  /** The other sites. */
  readonly sites: readonly string[]
  /** False before one of them was heard: each site would seem to be alone, so nothing is logged. */
  readonly isHeard: boolean
  /** What they report, after the checks of what they may report. */
  readonly siteStates: readonly SiteState[]
}

interface RecordDeathsParts {
  readonly site: string
  readonly rules: OperatorDeathRules
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
}

/** What was logged of a host. */
interface Logged {
  /** Hash of the causes. */
  causes: string
  /** Number of lines. The budget may not have had room for all. */
  lines: number
  /** Of its records. */
  readonly keys: Set<string>
}

/**
 * Logs what happens to each host when one of its sites dies: once, and when the reasons change. Lines for which the
 * budget has no room follow with later reconciles.
 */
export class RecordDeaths {
  readonly #parts: RecordDeathsParts
  /** By host; an authoritative record, which has other sites than the ordinary ones of its host, by its key. */
  readonly #logged = new Map<string, Logged>()
  /** Key in `#logged` by record key. */
  readonly #ids = new Map<string, string>()
  readonly #budget = new LineBudget(LINES_MAX, PERIOD_MS)
  /** For the line that says that more lines follow. */
  readonly #moreBudget = new LineBudget(1, PERIOD_MS)

  constructor(parts: RecordDeathsParts) {
    this.#parts = parts
  }

  note({ record, rootHost }: Pick<Publishing, 'record' | 'rootHost'>, known: KnownHost): void {
    if (!known.isHeard) return
    const host = bareHost(rootHost)
    const id = record.role === 'authoritative' ? record.key : host
    if (this.#ids.get(record.key) !== id) this.forget(record.key)
    this.#ids.set(record.key, id)
    const deaths = this.#deathsOf(host, known)
    const causes = shortHash(deaths.map(({ site, cause }) => `${site} ${cause}`).join('\n'))
    const logged = this.#logged.get(id) ?? { causes, lines: 0, keys: new Set<string>() }
    this.#logged.set(id, logged)
    logged.keys.add(record.key)
    if (logged.causes !== causes) logged.lines = 0
    logged.causes = causes
    for (const { site, text, kind } of deaths.slice(logged.lines)) {
      if (!this.#log(site, `${host}: ${text}`, kind === 'setting')) return
      logged.lines++
    }
  }

  forget(key: string): void {
    const id = this.#ids.get(key) ?? ''
    this.#ids.delete(key)
    const keys = this.#logged.get(id)?.keys
    keys?.delete(key)
    if (keys?.size === 0) this.#logged.delete(id)
  }

  #deathsOf(
    host: string,
    { sites: others, siteStates, records }: KnownHost,
  ): ReturnType<typeof ifSiteDies> {
    const { site, rules } = this.#parts
    const ours = [...records()].sort((a, b) => (a.record.key < b.record.key ? -1 : 1))
    const own = ours.flatMap(({ record: { key }, content }) => {
      return toPeerEndpoints(content, { key, site, ...UNKNOWN_HEALTH, sinceSeconds: 0 })
    })
    const endpoints = [...own, ...siteStates.flatMap((one) => one.endpoints)]
    const checks = ours.flatMap(({ content }) => content.healthCheck ?? [])
    const sites = new Set([site, ...others])
    const ofSites = { host, endpoints, check: checks[0], allDown: oldestAllDown(endpoints) }
    return ifSiteDies(ofSites, { ...rules, site, sites: sites.size, knowsOthers: true })
  }

  /** Returns true if the budget had room for the line. */
  #log(site: string, text: string, isWarning: boolean): boolean {
    const { log, clock } = this.#parts
    const nowMs = clock.monotonic()
    if (!this.#budget.take(nowMs)) {
      if (this.#moreBudget.take(nowMs))
        log.info(
          'more lines about the death of sites follow when their hosts are reconciled again',
          'site-death-more',
        )
      return false
    }
    if (isWarning) log.warning(`if ${site} dies: ${text}`, 'site-death')
    else log.info(`if ${site} dies: ${text}`, 'site-death')
    return true
  }
}

/** Returns the site of a nameserver; its address if its site is not known. */
export function siteAt(address: string, peers: ReadonlyMap<string, KnownPeer>): string {
  const states = peers.get(address)?.state?.siteStates ?? []
  return states.find(({ isOwn }) => isOwn)?.site ?? address
}
