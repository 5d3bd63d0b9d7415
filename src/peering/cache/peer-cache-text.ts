import type { Clock } from '../../base/clock.ts'
import { recallMoment, writeMoment } from '../../base/moment.ts'
import { type RefusedText, refuse } from '../../record/state/sealed-text.ts'
import type { StateKind } from '../../record/state/state-file.ts'
import type { Generation, PeerEndpoint, SiteState } from '../peer-endpoint.ts'
import { PEER_ENDPOINTS_MAX } from '../read-v2.ts'
import { isSite } from '../site-name.ts'
import { composePeerEndpoint, scanPeerEndpoint } from '../v2-codec.ts'
import { type CachedPeer, identityOf } from './cached-peer.ts'

const OCTETS_MAX = 256 * 1024 * 1024
/** Beside what peers told: their own lines, and the seal. */
const SPARE_OCTETS = 1024 * 1024
/** A peer of generation v1 has no name that others could know it by; its endpoints get it back when they are read. */
const NO_SITE = 'x'
const NEVER = '-'
const OWN = 'own'
const RELAYED = 'relayed'

/** What peers told, by `identityOf`. */
export type CachedPeers = ReadonlyMap<string, CachedPeer>

/**
 * A file with what peers told the site of that name:
 *
 *     site SITE
 *     peer ADDRESS KEY GENERATION SEEN ZONE_SEEN SERIAL
 *     own SITE
 *     zone HOST
 *     told RDATA
 *     host ROOT_HOST GENERATION SEEN own|relayed SITE
 *     told RDATA
 *
 * Of each peer what its zone told comes first, then what it answered for hosts, an item for each site. RDATA: of TXT, as
 * `composePeerEndpoint` makes it, base64. Times are milliseconds since the epoch. `-`: there is none. In files of before there is
 * no `own`, and a host line ends with SEEN: who is a nameserver of a site is guessed then, see `SiteState`.
 */
export function cachedPeers(site: string, clock: Clock): StateKind<CachedPeers> {
  return {
    what: 'peers',
    version: '1',
    octetsMax: OCTETS_MAX,
    mode: 0o600,
    gapMs: 10_000,
    isLarge: true,
    contents: 'words of peers',
    subject: 'what peers told',
    loss: 'each peer has to be heard of first',
    scan: (lines) => new PeerCacheReader(site, clock).read(lines),
  }
}

export interface PrintPeerCacheParts {
  readonly site: string
  readonly clock: Clock
  /** Told of a peer with more than there is room for, and how many of its endpoints are left out. */
  readonly onCut: (address: string, endpoints: number) => void
  readonly octetsMax?: number
}

/** The lines of such a file. Every peer has the same part of the room. */
export function* printPeerCache(
  peers: readonly CachedPeer[],
  parts: PrintPeerCacheParts,
): Generator<string> {
  const { site, clock, onCut, octetsMax = OCTETS_MAX - SPARE_OCTETS } = parts
  yield `site ${site}\n`
  const room = Math.floor(octetsMax / Math.max(1, peers.length))
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
  // That its own site has nothing counts beside what others tell of that, and of an old one nobody does.
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

/** What told lines are of. */
type Section = { readonly kind: 'zone'; readonly exported: Set<string> } | HostSection

interface HostSection extends Pick<SiteState, 'rootHost' | 'generation' | 'seenMs'> {
  readonly kind: 'host'
  /** undefined: the file is one of before. */
  readonly isOwn: boolean | undefined
}

const PEER = /^peer (\S+:\d{1,5}) (\S+) (v[12]) (\d{1,15}) (\d{1,15}|-) (\d{1,10}|-)$/
const ZONE = /^zone (\S+)$/
const OWN_SITE = /^own (\S+)$/
const HOST = /^host (\S+) (v[12]) (\d{1,15}|-)(?: (own|relayed) (\S+))?$/
const TOLD = /^told ([A-Za-z0-9+/]*={0,2})$/

class PeerCacheReader {
  readonly #site: string
  readonly #clock: Clock
  readonly #peers = new Map<string, CachedPeerDraft>()
  #peer: CachedPeerDraft | undefined
  /** The peer's, by root host and site. */
  readonly #siteStates = new Map<string, SiteStateDraft>()
  #section: Section | undefined
  /** Of the peer. */
  #count = 0

  constructor(site: string, clock: Clock) {
    this.#site = site
    this.#clock = clock
  }

  read(lines: readonly string[]): CachedPeers | RefusedText | undefined {
    const [first = '', ...rest] = lines
    if (!first.startsWith('site ')) return undefined
    const site = first.slice('site '.length)
    if (site !== this.#site) return refuse(`it is that of site ${JSON.stringify(site)}`, false)
    for (const line of rest) if (!this.#take(line)) return undefined
    return this.#peers
  }

  #take(line: string): boolean {
    // Nearly all lines are that.
    if (line.startsWith('told ')) return this.#acceptExported(line)
    if (line.startsWith('zone ')) return this.#takeZone(ZONE.exec(line)?.[1])
    if (line.startsWith('host ')) return this.#takeHost(HOST.exec(line))
    if (line.startsWith('own ')) return this.#takeOwnSite(OWN_SITE.exec(line)?.[1])
    return this.#takePeer(PEER.exec(line))
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
    // Also of a site that has nothing there.
    if (isSite(site) && generation === 'v2') this.#siteStateOf(site, section)
    return true
  }

  #acceptExported(line: string): boolean {
    const text = TOLD.exec(line)?.[1]
    const section = this.#section
    if (text === undefined || section === undefined) return false
    // A peer may tell that much in each of two ways, and what is refused of one must not cost the others theirs.
    if (++this.#count > PEER_ENDPOINTS_MAX) return true
    const rdata = Buffer.from(text, 'base64')
    if (section.kind === 'zone') {
      section.exported.add(rdata.toString('latin1'))
      return true
    }
    const endpoint = scanPeerEndpoint(rdata)
    // Another version may have had other rules.
    if (typeof endpoint === 'string' || endpoint.rootHost !== section.rootHost) return true
    const site = section.generation === 'v1' ? this.#peer!.address : endpoint.site
    this.#siteStateOf(site, section).endpoints.push({ ...endpoint, site })
    return true
  }

  /** The peer's share of a site and host. */
  #siteStateOf(site: string, { rootHost, generation, seenMs, isOwn }: HostSection): SiteStateDraft {
    const id = `${rootHost} ${site}`
    const known = this.#siteStates.get(id)
    if (known !== undefined) return known
    const { address: exporter, hosts } = this.#peer!
    const siteStates = hosts.get(rootHost) ?? []
    hosts.set(rootHost, siteStates)
    const [first] = siteStates
    // Who tells of several sites is a nameserver of none of them: see `SiteState`.
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
