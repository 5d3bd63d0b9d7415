import { createHash } from 'node:crypto'
import { statSync } from 'node:fs'
import { ownAddress } from '../arguments/endpoint.ts'
import { InputError } from '../base/errors.ts'
import { Stops } from '../base/stops.ts'
import { systemTimers } from '../base/timers.ts'
import { printHostPort } from '../dns/host-port.ts'
import { equalNames, printName } from '../dns/name/name.ts'
import { HMAC_SHA256, scanAlgorithm } from '../dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../dns/tsig/key.ts'
import { type KeyConfig, readKeyFile } from '../dns/tsig/key-file.ts'
import { printHost } from '../dnsrecord/print-endpoint.ts'
import { acquirePeerCache } from '../peering/cache/acquire-peer-cache.ts'
import type { PeerCache } from '../peering/cache/peer-cache.ts'
import type { LocalExporter } from '../peering/local-exporter.ts'
import { MergedSource, type PeerDisputes } from '../peering/merged-source.ts'
import type { PeerFollower } from '../peering/peer.ts'
import { type PeerStatus, wasHeard } from '../peering/peer-status.ts'
import { acquireFollower } from '../peering/shared-followers.ts'
import type { SetupContext } from '../plugin/directive.ts'
import type { KuadrantOptions } from '../plugins/kuadrant/options.ts'
import { findUnsigned, type KeyPlace } from '../plugins/kuadrant/peering-options.ts'
import type { RecordSource } from '../sources/source.ts'
import { measureDisputes, measurePeerCache, measurePeers } from './metrics.ts'
import { isAllowed, serversOf } from './zone-content.ts'

/** Maximum wait for the first answers of peers. */
const FIRST_ANSWERS_MS = 3000
/** File mode bit: users other than the owner may read the file. */
const READABLE_BY_OTHERS = 0o004
/** Silence after which the ready page mentions a peer. */
const SILENCE_MS = 5000

/** The peers of one block, while it is in service. */
export class BlockPeers {
  readonly #context: SetupContext
  readonly #options: KuadrantOptions
  readonly #stops = new Stops()
  #followers: readonly PeerFollower[] = []
  #hasHeard = false
  #peerCache: PeerCache | undefined
  #merged: MergedSource | undefined

  constructor(c: SetupContext, options: KuadrantOptions) {
    this.#context = c
    this.#options = options
  }

  /** Starts to query the peers. Throws InputError if the key can't be read. */
  start(): void {
    const { clock, log, block, metrics } = this.#context
    const { peers, key: place, expiryMs } = this.#options.peering
    const unsigned = findUnsigned(this.#options.peering)
    if (unsigned !== undefined) log.warning(unsigned.print())
    const config = place === undefined ? undefined : readKey(place)
    const key = config === undefined ? undefined : createKey(config)
    const sourceFor = (host: string): string => ownAddress(host, block)
    const parts = { key, sourceFor, clock, timers: systemTimers, log, random: Math.random }
    const peerCache = this.#openPeerCache()
    this.#followers = peers.map((peer) => {
      const address = printHostPort(peer)
      const shared = [address, block.listenHosts, config === undefined ? '' : digestOf(config)]
      const { follower, release } = acquireFollower(
        JSON.stringify(shared),
        { ...parts, peer },
        (fresh) => peerCache?.recall(fresh),
      )
      this.#stops.add(release)
      if (peerCache !== undefined) this.#stops.add(peerCache.keep(follower, expiryMs))
      return follower
    })
    this.#stops.add(measurePeers(metrics, () => this.#statuses))
    const zones = this.#options.zones.map((zone) => printName(zone)).join(' ')
    this.#stops.add(measureDisputes(metrics, zones, () => this.#disputes))
    // Data of all peers is known, from before a reload or from the file, so no caller has to wait.
    this.#hasHeard = this.#followers.every(({ lastSeenMs }) => wasHeard(lastSeenMs))
    void this.firstAnswers()
  }

  /** Resolves once every peer has been queried once, or after FIRST_ANSWERS_MS. */
  async firstAnswers(): Promise<void> {
    const all = Promise.all(this.#followers.map((follower) => follower.answered()))
    let stop = (): void => {}
    const patience = new Promise<void>((resolve) => {
      stop = systemTimers.after(FIRST_ANSWERS_MS, resolve)
    })
    await Promise.race([all, patience])
    stop()
    this.#hasHeard = true
  }

  /** Returns our own records merged with those of the peers. */
  async merge(own: RecordSource, exporter: LocalExporter): Promise<RecordSource> {
    const { clock, log } = this.#context
    const { site, peering, zones } = this.#options
    const merged = new MergedSource({
      zones: zones.map(printHost),
      servers: zones.flatMap((apex) => serversOf(apex, this.#options)).map(printHost),
      rulesOf: (address) => peering.rules.get(address) ?? [],
      own,
      allows: (record) => isAllowed(record, this.#options),
      site,
      exporter: exporter,
      peers: this.#followers,
      expiryMs: peering.expiryMs,
      clock,
      timers: systemTimers,
      log,
    })
    this.#merged = merged
    this.#stops.add(() => merged.close())
    await merged.ready()
    return merged
  }

  /** Handles a NOTIFY from that address. */
  notify(host: string): void {
    for (const follower of this.#followers) if (follower.isAt(host)) follower.notify()
  }

  unreadyReason(): string {
    return this.#hasHeard ? '' : 'peers have not answered yet'
  }

  /** Lists the silent peers for the ready page; '' = none. */
  note(): string {
    const nowMs = this.#context.clock.monotonic()
    const silent = this.#statuses.filter(({ lastSeenMs, error }) => {
      return error !== '' && nowMs - lastSeenMs >= SILENCE_MS
    })
    const notes = silent.map((status) => printSilence(status, nowMs))
    const { conflicts } = this.#disputes
    if (conflicts > 0)
      notes.push(`${conflicts} conflicts with other sites: ours is served, see the log`)
    return [...notes, this.#peerCache?.note() ?? ''].filter((note) => note !== '').join('; ')
  }

  close(): void {
    this.#stops.close()
  }

  #openPeerCache(): PeerCache | undefined {
    const { site, peering } = this.#options
    const path = peering.peerCache?.path
    if (path === undefined) return undefined
    const { clock, log, metrics } = this.#context
    const { cache: peerCache, release } = acquirePeerCache({
      path,
      site,
      clock,
      log,
      timers: systemTimers,
    })
    this.#peerCache = peerCache
    this.#stops.add(release, measurePeerCache(metrics, peerCache, clock))
    return peerCache
  }

  get #disputes(): PeerDisputes {
    return this.#merged?.disputes ?? { conflicts: 0, refused: new Map() }
  }

  get #statuses(): PeerStatus[] {
    return this.#followers.map((follower) => follower.status)
  }
}

function printSilence(
  { address, lastSeenMs, error, endpoints }: PeerStatus,
  nowMs: number,
): string {
  if (!wasHeard(lastSeenMs)) return `peer ${address} was never heard of: ${error}`
  const seconds = Math.round((nowMs - lastSeenMs) / 1000)
  return `peer ${address} is silent for ${seconds} s, ${endpoints} endpoints of it are known: ${error}`
}

/** Reads the key of that name from its file. Throws InputError. */
export function readKey({ name, path, position }: KeyPlace): KeyConfig {
  const found = readKeyFile(path, position).find((key) => equalNames(key.name, name))
  if (found !== undefined) return found
  throw new InputError(position, `there is no key ${printName(name)} in ${path}`)
}

/** Returns the faults of the key; warns of a key file that all users can read. */
export function checkKey(
  place: KeyPlace,
  warn: (warning: InputError) => void,
): readonly InputError[] {
  try {
    readKey(place)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return error.all()
  }
  if ((statSync(place.path).mode & READABLE_BY_OTHERS) !== 0) {
    const message = `everybody on this machine can read the secrets in ${place.path}; chmod o-r it`
    warn(new InputError(place.position, message))
  }
  return []
}

function createKey({ name, algorithm, secret }: KeyConfig): TsigKey {
  return createTsigKey(name, scanAlgorithm(algorithm) ?? HMAC_SHA256, secret)
}

/** Returns a digest that differs between keys and does not reveal the secret. */
function digestOf({ name, algorithm, secret }: KeyConfig): string {
  const hash = createHash('sha256').update(name).update(`\0${algorithm}\0`).update(secret)
  return hash.digest('hex')
}
