import type { Clock } from '../../base/clock.ts'
import { UNKNOWN_HEALTH } from '../../health/address-health.ts'
import { ProbePolicy } from '../../health/probes/probe-policy.ts'
import { type DeathRules, ifSiteDies } from '../../peering/deaths/if-site-dies.ts'
import { oldestAllDown } from '../../peering/deaths/oldest-all-down.ts'
import type { SiteState } from '../../peering/peer-endpoint.ts'
import { bareHost } from '../../peering/peer-status.ts'
import { toPeerEndpoints } from '../../peering/to-peer-endpoint.ts'
import { OPEN } from '../../steering/rules.ts'
import { LineBudget } from '../../telemetry/line-budget.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { KnownPeer } from '../peers/peer-state-store.ts'
import type { Publishing } from '../plan/decide.ts'
import { shortHash } from '../record/short-hash.ts'
import type { OperatorSettings } from '../settings.ts'

/** Lines within a period, over all records. */
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
    allDown: OPEN,
  }
}

/** What is known of the peers of a record. */
interface PeersOfRecord {
  /** Of all nameservers. */
  readonly addresses: readonly string[]
  readonly peers: ReadonlyMap<string, KnownPeer>
  /** What they report, after the checks of what they may report. */
  readonly siteStates: readonly SiteState[]
}

interface RecordDeathsParts {
  readonly site: string
  readonly rules: OperatorDeathRules
  readonly clock: Pick<Clock, 'monotonic'>
  readonly log: Logger
}

/** Logs what happens to each record when one of its sites dies: once, and when the reasons change. */
export class RecordDeaths {
  readonly #parts: RecordDeathsParts
  /** By record key: hash of the causes that were logged. */
  readonly #logged = new Map<string, string>()
  readonly #budget = new LineBudget(LINES_MAX, PERIOD_MS)
  #unlogged = 0

  constructor(parts: RecordDeathsParts) {
    this.#parts = parts
  }

  /** Logs nothing before a peer was heard: each site would seem to be alone. */
  note(publishing: Publishing, known: PeersOfRecord): void {
    if (![...known.peers.values()].some(({ state }) => state !== undefined)) return
    const { key } = publishing.record
    const deaths = this.#deathsOf(publishing, known)
    const causes = shortHash(deaths.map(({ site, cause }) => `${site} ${cause}`).join('\n'))
    if (this.#logged.get(key) === causes) return
    this.#logged.set(key, causes)
    for (const { site, host, text, kind } of deaths) {
      this.#log(site, `${key}: ${host}: ${text}`, kind === 'setting')
    }
  }

  forget(key: string): void {
    this.#logged.delete(key)
  }

  #deathsOf(
    { record, rootHost, content }: Publishing,
    { addresses, peers, siteStates }: PeersOfRecord,
  ): ReturnType<typeof ifSiteDies> {
    const { site, rules } = this.#parts
    const facts = { key: record.key, site, ...UNKNOWN_HEALTH, sinceSeconds: 0 }
    const others = siteStates.flatMap(({ endpoints }) => endpoints)
    const endpoints = [...toPeerEndpoints(content, facts), ...others]
    const sites = new Set(addresses.map((address) => siteAt(address, peers)))
    sites.add(site)
    const host = {
      host: bareHost(rootHost),
      endpoints,
      check: content.healthCheck,
      allDown: oldestAllDown(endpoints),
    }
    return ifSiteDies(host, { ...rules, site, sites: sites.size, knowsOthers: true })
  }

  #log(site: string, text: string, isWarning: boolean): void {
    const { log, clock } = this.#parts
    if (!this.#budget.take(clock.monotonic())) {
      this.#unlogged++
      return
    }
    if (this.#unlogged > 0) log.info(`and ${this.#unlogged} more lines about the death of sites`)
    this.#unlogged = 0
    if (isWarning) log.warning(`if ${site} dies: ${text}`)
    else log.info(`if ${site} dies: ${text}`)
  }
}

/** Returns the site of a nameserver; its address if its site is not known. */
export function siteAt(address: string, peers: ReadonlyMap<string, KnownPeer>): string {
  const states = peers.get(address)?.state?.siteStates ?? []
  return states.find(({ isOwn }) => isOwn)?.site ?? address
}
