import { printHost, printRecordType } from '../../records/print-endpoint.ts'
import { quote } from '../../records/validate/fields.ts'
import type { PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import { bareHost } from '../peer-status.ts'
import { cutProblems } from '../read-v2.ts'
import { namesAbove } from './host-index.ts'
import type { HostNames } from './name-counts.ts'
import { isAllowedBy, isStructural, type PeerRule } from './peer-rule.ts'

/** The names of this site's own records, over all hosts. Names are lower case, without a final dot. */
export interface OwnNames {
  isApex(name: string): boolean
  /** True if we have a record of that host or of its wildcard. `host`: without `*.`. */
  hasHost(host: string): boolean
  /** True if we have a record of a host below that name. */
  hasHostBelow(name: string): boolean
  /**
   * Names of the endpoints of our records of that host and of its wildcard, without the records that are merged
   * here. `host`: without `*.`.
   */
  namesElsewhere(host: string): HostNames
}

interface ScreenParts {
  readonly names: OwnNames
  /** The data of peers is merged with these. */
  readonly own: readonly Pick<PeerEndpoint, 'rootHost' | 'endpoint'>[]
  /** By address of the peer. */
  readonly rulesOf: (peer: string) => readonly PeerRule[]
}

interface Screened {
  readonly siteStates: readonly SiteState[]
  /** Why endpoints were refused; quotes the peers' text. At most ten lines per peer, and how many more. */
  readonly refused: readonly Refused[]
}

export interface Refused {
  /** Address of the peer. */
  readonly peer: string
  readonly text: string
}

/** Types that any peer may add to our names. */
const ADDED_TYPES: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME'])

/**
 * Returns what peers report of one host, without the endpoints that they may not report. Peers add
 * endpoints to our hosts, and hosts of their own. See docs/explanation/peers.md for the rules.
 * `siteStates`: all of one host and its wildcard.
 */
export function screenSiteStates(siteStates: readonly SiteState[], parts: ScreenParts): Screened {
  const screen = new Screen(parts)
  const problems = new Map<string, string[]>()
  const kept = siteStates.map((siteState) => {
    const endpoints = siteState.endpoints.filter(({ endpoint, rootHost }) => {
      const [name, type] = [printHost(endpoint.owner), printRecordType(endpoint.type)]
      const host = bareHost(rootHost)
      // Another record of ours has that name; the endpoint is merged with that record.
      if (screen.isElsewhere(name, host)) return false
      const reason = screen.refuse(name, type, host, siteState.exporter)
      if (reason === '') return true
      const list = problems.get(siteState.exporter) ?? []
      problems.set(siteState.exporter, list)
      list.push(`${quote(name)} ${type}: ${reason}`)
      return false
    })
    return endpoints.length === siteState.endpoints.length ? siteState : { ...siteState, endpoints }
  })
  const refused = [...problems].flatMap(([peer, list]) => {
    const unique = [...new Set(list)].sort()
    const host = bareHost(siteStates[0]!.rootHost)
    return cutProblems(unique, host).map((text) => ({ peer, text }))
  })
  return { siteStates: kept, refused }
}

/** Decides on the endpoints of one host. */
class Screen {
  readonly #parts: ScreenParts
  /** Types of the merged endpoints, by name. */
  readonly #types = new Map<string, Set<string>>()
  /** Names of the merged endpoints, and the names above them. */
  readonly #here = new Set<string>()
  /** By host. */
  readonly #elsewhere = new Map<string, HostNames>()

  constructor(parts: ScreenParts) {
    this.#parts = parts
    for (const { rootHost, endpoint } of parts.own) {
      const dnsName = printHost(endpoint.owner)
      const types = this.#types.get(dnsName) ?? new Set()
      this.#types.set(dnsName, types.add(printRecordType(endpoint.type)))
      for (const name of [dnsName, rootHost]) addWithAbove(this.#here, name)
    }
  }

  /** True if another record of ours of the same host has the name, and the records that are merged here do not. */
  isElsewhere(name: string, host: string): boolean {
    return !this.#types.has(name) && this.#namesOf(host).has(name)
  }

  /** Returns why the endpoint is refused; '' = it is accepted. */
  refuse(name: string, type: string, host: string, peer: string): string {
    const { names } = this.#parts
    const isAllowed = isAllowedBy(this.#parts.rulesOf(peer), name, type)
    if (isStructural(type)) {
      if (!isAllowed) return `peers may not delegate names here; ${cure(name, type)}`
      return this.#exists(name) ? 'it would replace names of ours' : ''
    }
    const place = this.#findOther(name, host)
    if (place !== '') return place
    if (isAllowed) return ''
    const isOurs = names.hasHost(host)
    const reason =
      this.#refuseName(name, host, isOurs) ||
      (this.#isCovered(name) ? 'our wildcard answers that name' : '') ||
      this.#refuseType(name, type)
    return reason === '' ? '' : `${reason}; ${cure(name, type)}`
  }

  /**
   * Returns why the name does not belong to the host that the peer reports it for; '' = it belongs
   * to the host.
   */
  #findOther(name: string, host: string): string {
    const { names } = this.#parts
    for (const above of [name, ...namesAbove(name)]) {
      if (
        above !== host &&
        above.endsWith(`.${host}`) &&
        (names.hasHost(above) || names.isApex(above))
      )
        return `it belongs to our host ${above}, not to ${host}`
      if (above !== host && this.#namesOf(above).has(name))
        return `our record of ${above} has that name`
    }
    return ''
  }

  #refuseName(name: string, host: string, isOurs: boolean): string {
    const { names } = this.#parts
    const isHost = name === host && isOurs
    if (names.isApex(name) && !isHost) return 'it is the apex of a zone of ours'
    if (isOurs && names.isApex(host) && !isHost && !this.#isBelowOurs(name, host)) {
      return 'it is not below one of our names of the zone'
    }
    return this.#types.has(name) ? '' : this.#refuseNewName(name, host, isOurs)
  }

  /** The rules for a name that none of the merged endpoints has. */
  #refuseNewName(name: string, host: string, isOurs: boolean): string {
    // A wildcard host of ours is known even if no endpoint has exactly its name.
    if (hasLabel(name, /^\*$/) && !this.#here.has(name)) {
      return 'peers may not add wildcards that we do not have'
    }
    const ownPart = isOurs ? name.slice(0, name.length - host.length) : name
    if (hasLabel(ownPart, /^_/)) {
      return 'peers may not add names with an underscore that we do not have'
    }
    const isHost = name === host && isOurs
    return this.#parts.names.hasHostBelow(name) && !isHost ? 'our hosts are below that name' : ''
  }

  /** True for a name at or below a merged name, except the host itself. */
  #isBelowOurs(name: string, host: string): boolean {
    for (const above of [name, ...namesAbove(name)]) {
      if (above === host) return false
      if (this.#here.has(above)) return true
    }
    return false
  }

  #refuseType(name: string, type: string): string {
    const types = this.#types.get(name)
    if (types === undefined || ADDED_TYPES.has(type) || types.has(type)) return ''
    return `the name is ours, and we have no ${type} there`
  }

  /** True if a wildcard of ours answers for the name without the peer's endpoint (RFC 4592 section 3.3.1). */
  #isCovered(name: string): boolean {
    if (this.#exists(name)) return false
    for (const above of namesAbove(name)) {
      if (this.#exists(above)) return this.#exists(`*.${above}`)
    }
    return false
  }

  /** True if one of our names is at or below the name. */
  #exists(name: string): boolean {
    const { names } = this.#parts
    if (this.#here.has(name) || names.hasHost(name) || names.hasHostBelow(name)) return true
    for (const above of [name, ...namesAbove(name)]) {
      if (this.#namesOf(above).hasAtOrBelow(name)) return true
    }
    return false
  }

  #namesOf(host: string): HostNames {
    const found = this.#elsewhere.get(host)
    if (found !== undefined) return found
    const names = this.#parts.names.namesElsewhere(host)
    this.#elsewhere.set(host, names)
    return names
  }
}

function addWithAbove(names: Set<string>, name: string): void {
  names.add(name)
  for (const above of namesAbove(name)) {
    if (names.has(above)) return
    names.add(above)
  }
}

function hasLabel(name: string, pattern: RegExp): boolean {
  return name.split('.').some((label) => pattern.test(label))
}

function cure(name: string, type: string): string {
  return `allow it with \`allow name ${name} ${type}\``
}
