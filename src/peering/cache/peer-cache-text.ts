import type { Clock } from '../../base/clock.ts'
import { recallMoment, writeMoment } from '../../base/moment.ts'
import { type RefusedText, refuse } from '../../base/persist/sealed-text.ts'
import type { StateKind } from '../../base/persist/state-file.ts'
import type { Generation, PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import { PEER_ENDPOINTS_MAX } from '../read-v2.ts'
import { isSite } from '../site-name.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../v2-codec.ts'
import { type CachedPeer, identityOf } from './cached-peer.ts'

const OCTETS_MAX = 256 * 1024 * 1024
/** Room for the lines of the file itself and its checksum, in addition to what peers reported. */
const SPARE_OCTETS = 1024 * 1024
/** A v1 peer has no site name that others could use; reading its endpoints restores the peer's address as the site. */
const NO_SITE = 'x'
const NEVER = '-'
const OWN = 'own'
const RELAYED = 'relayed'

/** More addresses that are down are not kept, and not read. */
export const DOWN_MAX = 100_000

/** The addresses of other sites that are down at one host, by the decision of this site. */
export interface CachedDown {
  readonly addresses: ReadonlySet<string>
  /** Monotonic milliseconds of the decision. */
  readonly seenMs: number
}

export interface CachedPeers {
  /** By `identityOf`. */
  readonly peers: ReadonlyMap<string, CachedPeer>
  /** By host without `*.`. */
  readonly down: ReadonlyMap<string, CachedDown>
}

/**
 * A file with what peers reported to the site of that name:
 *
 *     site SITE
 *     down HOST SEEN ADDRESS
 *     peer ADDRESS KEY GENERATION SEEN ZONE_SEEN SERIAL
 *     own SITE
 *     zone HOST
 *     told RDATA
 *     host ROOT_HOST GENERATION SEEN own|relayed SITE
 *     told RDATA
 *
 * The addresses that are down come first. For each peer, its zone comes first, then its answers for hosts, one item per
 * site. RDATA: of TXT, as `composePeerEndpoint` makes it, in base64. Times are milliseconds since the epoch. `-` stands
 * for a missing value. Files of earlier versions have no `own`, and a host line ends with SEEN. For these, the reader
 * guesses which peer is a nameserver of a site, see `SiteState`.
 */
export function cachedPeers(site: string, clock: Clock): StateKind<CachedPeers> {
  return {
    what: 'peers',
    version: '1',
    octetsMax: OCTETS_MAX,
    mode: 0o600,
    gapMs: 10_000,
    isLarge: true,
    contents: 'peer cache',
    loss: 'the endpoints of a peer are unknown until it answers',
    scan: (lines) => new PeerCacheReader(site, clock).read(lines),
  }
}

interface PrintPeerCacheParts {
  readonly site: string
  readonly clock: Clock
  /**
   * Called for a peer whose data does not fit, with the number of endpoints that are left out; and with '' and the
   * number of addresses that are down.
   */
  readonly onCut: (address: string, count: number) => void
  readonly octetsMax?: number
}

/** Yields the lines of such a file. Each peer, and the addresses that are down, get an equal part of the room. */
export function* printPeerCache(
  peers: readonly CachedPeer[],
  down: CachedPeers['down'],
  parts: PrintPeerCacheParts,
): Generator<string> {
  const { site, clock, onCut, octetsMax = OCTETS_MAX - SPARE_OCTETS } = parts
  yield `site ${site}\n`
  const room = Math.floor(octetsMax / (peers.length + 1))
  yield* printDown(down, room, parts)
  for (const peer of peers) {
    let octets = 0
    let cut = 0
    for (const { text, endpoints } of printPeer(peer, clock)) {
      if (octets + text.length > room) {
        cut += endpoints
        continue
      }
      octets += text.length
      yield text
    }
    if (cut > 0) onCut(peer.address, cut)
  }
}

function* printDown(
  down: CachedPeers['down'],
  room: number,
  { clock, onCut }: PrintPeerCacheParts,
): Generator<string> {
  let [octets, kept, cut] = [0, 0, 0]
  for (const [host, { addresses, seenMs }] of down) {
    for (const address of addresses) {
      const line = `down ${host} ${printSeen(seenMs, clock)} ${address}\n`
      if (kept >= DOWN_MAX || octets + line.length > room) cut++
      else {
        kept++
        octets += line.length
        yield line
      }
    }
  }
  if (cut > 0) onCut('', cut)
}

interface Piece {
  readonly text: string
  readonly endpoints: number
}

function* printPeer(peer: CachedPeer, clock: Clock): Generator<Piece> {
  const { address, keyName, generation, serial, ownSite } = peer
  const [seen, zoneSeen] = [peer.seenMs, peer.zoneSeenMs].map((ms) => printSeen(ms, clock))
  const text = `peer ${address} ${keyName || NEVER} ${generation} ${seen} ${zoneSeen} ${serial ?? NEVER}\n`
  const own = ownSite === undefined ? '' : `own ${ownSite || NEVER}\n`
  yield { text: text + own, endpoints: 0 }
  for (const [host, exported] of peer.zone) {
    let text = `zone ${host}\n`
    for (const rdata of exported)
      text += `told ${Buffer.from(rdata, 'latin1').toString('base64')}\n`
    yield { text, endpoints: exported.size }
  }
  for (const [rootHost, siteStates] of peer.hosts) {
    for (const siteState of siteStates) yield printSiteState(rootHost, siteState, clock)
  }
}

function printSiteState(rootHost: string, siteState: SiteState, clock: Clock): Piece {
  const { generation, endpoints, seenMs, isOwn } = siteState
  const isOld = generation === 'v1'
  // The state "this site has no endpoints" matters only from the site's own nameserver: it
  // overrides other reports. For v1 peers no other peer reports the site.
  if (endpoints.length === 0 && (isOld || !isOwn)) return { text: '', endpoints: 0 }
  const whose = `${isOwn ? OWN : RELAYED} ${isOld ? NEVER : siteState.site}`
  let text = `host ${rootHost} ${generation} ${printSeen(seenMs, clock)} ${whose}\n`
  for (const endpoint of endpoints) {
    const rdata = composePeerEndpoint(isOld ? { ...endpoint, site: NO_SITE } : endpoint)
    if (rdata !== undefined) text += `told ${Buffer.from(rdata).toString('base64')}\n`
  }
  return { text, endpoints: endpoints.length }
}

function printSeen(seenMs: number, clock: Clock): string {
  if (seenMs === Number.NEGATIVE_INFINITY) return NEVER
  return String(Math.max(0, writeMoment(seenMs, clock)))
}

interface CachedPeerDraft extends CachedPeer {
  ownSite: string | undefined
  readonly zone: Map<string, Set<string>>
  readonly hosts: Map<string, SiteStateDraft[]>
}

interface SiteStateDraft extends SiteState {
  isOwn: boolean
  readonly endpoints: PeerEndpoint[]
}

/** The section of the following `told` lines. */
type Section = { readonly kind: 'zone'; readonly exported: Set<string> } | HostSection

interface HostSection extends Pick<SiteState, 'rootHost' | 'generation' | 'seenMs'> {
  readonly kind: 'host'
  /** undefined: the file is from an earlier version. */
  readonly isOwn: boolean | undefined
}

const DOWN = /^down (\S{1,255}) (\d{1,15}) (\S{1,255})$/
const PEER = /^peer (\S+:\d{1,5}) (\S+) (v[12]) (\d{1,15}) (\d{1,15}|-) (\d{1,10}|-)$/
const ZONE = /^zone (\S+)$/
const OWN_SITE = /^own (\S+)$/
const HOST = /^host (\S+) (v[12]) (\d{1,15}|-)(?: (own|relayed) (\S+))?$/
const TOLD = /^told ([A-Za-z0-9+/]*={0,2})$/

class PeerCacheReader {
  readonly #site: string
  readonly #clock: Clock
  readonly #peers = new Map<string, CachedPeerDraft>()
  readonly #down = new Map<string, { readonly addresses: Set<string>; readonly seenMs: number }>()
  /** Addresses in `#down`. */
  #downCount = 0
  #peer: CachedPeerDraft | undefined
  /** States of the current peer, by root host and site. */
  readonly #siteStates = new Map<string, SiteStateDraft>()
  #section: Section | undefined
  /** Endpoints of the current peer. */
  #count = 0

  constructor(site: string, clock: Clock) {
    this.#site = site
    this.#clock = clock
  }

  read(lines: readonly string[]): CachedPeers | RefusedText | undefined {
    const [first = '', ...rest] = lines
    if (!first.startsWith('site ')) return undefined
    const site = first.slice('site '.length)
    if (site !== this.#site) return refuse(`it belongs to site ${JSON.stringify(site)}`, false)
    for (const line of rest) if (!this.#take(line)) return undefined
    return { peers: this.#peers, down: this.#down }
  }

  #take(line: string): boolean {
    // Nearly all lines are of this kind.
    if (line.startsWith('told ')) return this.#acceptExported(line)
    if (line.startsWith('zone ')) return this.#takeZone(ZONE.exec(line)?.[1])
    if (line.startsWith('host ')) return this.#takeHost(HOST.exec(line))
    if (line.startsWith('own ')) return this.#takeOwnSite(OWN_SITE.exec(line)?.[1])
    if (line.startsWith('down ')) return this.#takeDown(DOWN.exec(line))
    return this.#takePeer(PEER.exec(line))
  }

  #takeDown(found: RegExpExecArray | null): boolean {
    if (found === null || this.#peer !== undefined) return false
    const [, host = '', seen = '', address = ''] = found
    // The excess is skipped, so that peers keep their data.
    if (++this.#downCount > DOWN_MAX) return true
    const known = this.#down.get(host) ?? { addresses: new Set(), seenMs: this.#scanSeen(seen) }
    this.#down.set(host, known)
    known.addresses.add(address)
    return true
  }

  #takePeer(found: RegExpExecArray | null): boolean {
    if (found === null) return false
    const [, address = '', key = '', generation, seen = '', zoneSeen = '', serial = ''] = found
    const peer: CachedPeerDraft = {
      address,
      keyName: key === NEVER ? '' : key,
      generation: generation as Generation,
      seenMs: this.#scanSeen(seen),
      zoneSeenMs: this.#scanSeen(zoneSeen),
      serial: serial === NEVER ? undefined : Number(serial),
      ownSite: undefined,
      zone: new Map(),
      hosts: new Map(),
    }
    this.#peers.set(identityOf(peer), peer)
    this.#peer = peer
    this.#siteStates.clear()
    this.#section = undefined
    this.#count = 0
    return true
  }

  #takeOwnSite(site: string | undefined): boolean {
    if (this.#peer === undefined || site === undefined) return false
    if (site !== NEVER && !isSite(site)) return false
    this.#peer.ownSite = site === NEVER ? '' : site
    return true
  }

  #takeZone(host: string | undefined): boolean {
    if (host === undefined || this.#peer === undefined) return false
    const exported = new Set<string>()
    this.#peer.zone.set(host, exported)
    this.#section = { kind: 'zone', exported: exported }
    return true
  }

  #takeHost(found: RegExpExecArray | null): boolean {
    if (found === null || this.#peer === undefined) return false
    const [, rootHost = '', generation, seen = '', whose, site = ''] = found
    const seenMs = this.#scanSeen(seen)
    const isOwn = whose === undefined ? undefined : whose === OWN
    const about = { rootHost, generation: generation as Generation, seenMs, isOwn }
    const section: HostSection = { kind: 'host', ...about }
    this.#section = section
    // Also creates the state of a site that has no endpoints there.
    if (isSite(site) && generation === 'v2') this.#siteStateOf(site, section)
    return true
  }

  #acceptExported(line: string): boolean {
    const text = TOLD.exec(line)?.[1]
    const section = this.#section
    if (text === undefined || section === undefined) return false
    // A peer can report this many endpoints in its zone and again in host answers. Skip the excess
    // instead of rejecting the file, so that other peers keep their data.
    if (++this.#count > PEER_ENDPOINTS_MAX) return true
    const rdata = Buffer.from(text, 'base64')
    if (section.kind === 'zone') {
      section.exported.add(rdata.toString('latin1'))
      return true
    }
    const endpoint = scanPeerEndpoint(rdata)
    // A different version may have written the file under other rules.
    if (typeof endpoint === 'string' || endpoint.rootHost !== section.rootHost) return true
    const site = section.generation === 'v1' ? this.#peer!.address : endpoint.site
    this.#siteStateOf(site, section).endpoints.push({ ...endpoint, site })
    return true
  }

  /** Returns the peer's state of a site and host; creates it if needed. */
  #siteStateOf(site: string, { rootHost, generation, seenMs, isOwn }: HostSection): SiteStateDraft {
    const id = `${rootHost} ${site}`
    const known = this.#siteStates.get(id)
    if (known !== undefined) return known
    const { address: exporter, hosts } = this.#peer!
    const siteStates = hosts.get(rootHost) ?? []
    hosts.set(rootHost, siteStates)
    const [first] = siteStates
    // A peer that reports several sites is a nameserver of none of them: see `SiteState`.
    if (isOwn === undefined && first !== undefined) first.isOwn = false
    const from = { site, exporter: exporter, isOwn: isOwn ?? siteStates.length === 0 }
    const siteState: SiteStateDraft = { ...from, rootHost, endpoints: [], seenMs, generation }
    siteStates.push(siteState)
    this.#siteStates.set(id, siteState)
    return siteState
  }

  #scanSeen(text: string): number {
    return text === NEVER
      ? Number.NEGATIVE_INFINITY
      : recallMoment(Number(text), this.#clock).seenMs
  }
}
