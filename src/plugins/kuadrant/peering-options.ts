import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { scanDuration } from '../../base/duration.ts'
import type { Position } from '../../base/errors.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { printHostPort, splitHostPort } from '../../dns/host-port.ts'
import { scanName } from '../../dns/name/name.ts'
import { GROUP_CHARACTERS_MAX, isGroup } from '../../health/drain/active-groups.ts'
import { scanPeerAddress } from '../../peering/peer-address.ts'
import { scanSilentSite } from '../../peering/silent-sites.ts'
import { isSite } from '../../peering/site-name.ts'
import { type PeerRule, scanPeerRule } from '../../peering/trust/peer-rule.ts'
import type { BlockConfig } from '../../plugin/directive.ts'
import type {
  GroupOptions,
  KeyPlace,
  PeerCacheFile,
  PeeringOptions,
} from '../../publish/options.ts'

/** Maximum of peers of one block. A larger number would be a mistake. */
const PEERS_MAX = 64

const HOLD_DOWN_MS_MIN = 1000
const HOLD_DOWN_MS_MAX = 3600 * 1000

export type PeeringDraft = { -readonly [K in keyof PeeringOptions]: PeeringOptions[K] } & {
  /** `off` = as written. */
  probing?: 'on' | 'off'
  /** As written; undefined = the default. */
  quorum?: number
  quorumPosition?: Position
  holdDownMs?: number
}

/** Reads `site NAME`. */
export function scanSite(d: Dispenser): string {
  const args = d.remainingArgs()
  const [site = ''] = args
  if (args.length === 1 && isSite(site)) return site
  throw d.error('site takes a name of up to 63 letters, digits, dots, hyphens and underscores')
}

/** Reads `group NAME [ADDR...]`. */
export function scanGroup(d: Dispenser): GroupOptions {
  const [name = '', ...texts] = d.remainingArgs(1)
  if (!isGroup(name)) {
    throw d.error(
      `group: ${JSON.stringify(name)} is not a name of up to ${GROUP_CHARACTERS_MAX} characters without ; & , " ' and spaces`,
    )
  }
  const servers = texts.map((text) => {
    const server = splitHostPort(text)
    if (server !== undefined && isIP(server.host) !== 0) return server
    throw d.error(`group: ${text} is not an address; write it as 192.0.2.53 or 192.0.2.53:5353`)
  })
  return { name, servers }
}

/** Reads `peer ADDR... [{ allow name|subdomain NAME [TYPE...] }]`. */
export function scanPeers(d: Dispenser, draft: PeeringDraft): void {
  draft.position ??= d.position()
  const args = d.remainingArgs(1)
  const peers = [...draft.peers]
  for (const text of args) {
    const peer = scanPeerAddress(text)
    if (typeof peer === 'string') throw d.error(`peer: ${peer}`)
    const isKnown = peers.some((other) => printHostPort(other) === printHostPort(peer))
    if (isKnown) throw d.error(`peer ${text} appears twice; remove one`)
    peers.push(peer)
  }
  if (peers.length > PEERS_MAX) throw d.error(`there may be up to ${PEERS_MAX} peers`)
  const named = peers.slice(draft.peers.length)
  draft.peers = peers
  const rules: PeerRule[] = []
  d.eachProperty(() => rules.push(scanRule(d)))
  if (rules.length === 0) return
  draft.rules = new Map([
    ...draft.rules,
    ...named.map((peer) => [printHostPort(peer), rules] as const),
  ])
}

function scanRule(d: Dispenser): PeerRule {
  const property = d.value()
  if (property !== 'allow') throw d.unknownProperty(property, ['allow'])
  const rule = scanPeerRule(d.remainingArgs())
  if (typeof rule === 'string') throw d.error(rule)
  return rule
}

/** Reads `tsig NAME FILE`. */
export function scanKeyPlace(d: Dispenser, block: BlockConfig): KeyPlace {
  const [nameText, file, ...more] = d.remainingArgs()
  const name = nameText === undefined ? undefined : scanName(nameText.replace(/\.?$/, '.'))
  if (name === undefined || file === undefined || more.length > 0) {
    throw d.error('tsig needs the name of a key and the file that contains it')
  }
  return { name, path: resolve(block.root, file), position: d.position() }
}

export function scanPeerCache(d: Dispenser, block: BlockConfig): PeerCacheFile {
  const file = d.onlyArg()
  return { path: resolve(block.root, file), position: d.position() }
}

/** Reads `silent-site keep|remove DURATION`. */
export function readSilentSite(d: Dispenser): number {
  const silentMs = scanSilentSite(d.remainingArgs(1))
  if (typeof silentMs === 'string') throw d.error(silentMs)
  return silentMs
}

/** Reads `probe-peers [off]`. */
export function scanProbePeers(d: Dispenser, draft: PeeringDraft): void {
  if (draft.probing !== undefined) throw d.error('probe-peers appears twice')
  const [text] = d.remainingArgs(0, 1)
  if (text !== undefined && text !== 'off') {
    throw d.error(`probe-peers takes no argument or off, got ${text}`)
  }
  draft.probing = text === 'off' ? 'off' : 'on'
}

/** Reads `quorum N`. */
export function scanQuorum(d: Dispenser): number {
  const text = d.onlyArg()
  const quorum = /^\d{1,2}$/.test(text) ? Number(text) : 0
  if (quorum >= 1 && quorum <= PEERS_MAX + 1) return quorum
  throw d.error(`quorum must be from 1 to ${PEERS_MAX + 1} sites, got ${text}`)
}

/** Reads `hold-down DURATION`. */
export function scanHoldDown(d: Dispenser): number {
  const text = d.onlyArg()
  const holdDownMs = scanDuration(text)
  if (holdDownMs === undefined || holdDownMs < HOLD_DOWN_MS_MIN || holdDownMs > HOLD_DOWN_MS_MAX) {
    throw d.error(`hold-down must be from 1s to 1h, got ${text}`)
  }
  return holdDownMs
}
