import { ask, questionOf } from '../client/ask.ts'
import { type HostPort, printHostPort } from '../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { isSubdomain, nameKey, printName, scanName } from '../dns/name/name.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import { V2_LABEL } from '../record/kdrnt.ts'
import { printLatin1 } from '../record/latin1.ts'
import { KDRNT, KDRNT_ZONE } from '../record/local-zone.ts'
import { leastTtl, negativeTtl } from './least-ttl.ts'
import { metadataNames } from './old-metadata.ts'
import { type PeerAddress, resolvePeer } from './peer-address.ts'
import type { SiteState } from './peer-endpoint.ts'
import { readOldAnswers } from './read-v1.ts'
import { readV2Host } from './read-v2.ts'

/** How a peer is asked. */
export interface AskHostOptions {
  /** Questions are signed, and replies have to be. */
  readonly key?: TsigKey | undefined
  /** Address that we ask from; absent or '' = any. */
  readonly source?: string
  readonly signal?: AbortSignal | undefined
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
}

/** What one peer said of one host. */
export type AskedHost =
  /**
   * Of v2 one per site that it speaks for. `problems`: what was refused of it; its text is quoted. `ttlSeconds`: the
   * least of its endpoints; undefined = not known.
   */
  | {
      readonly kind: 'shares'
      readonly siteStates: readonly SiteState[]
      readonly problems: readonly string[]
      readonly ttlSeconds: number | undefined
    }
  /** It has no such host. `ttlSeconds`: how long that holds, as its SOA says; undefined = it came without. */
  | { readonly kind: 'nothing'; readonly ttlSeconds: number | undefined }
  | { readonly kind: 'failed'; readonly reason: string }

/** Of one question over UDP; a peer that is farther away is of no use. */
const TIMEOUT_MS = 1500
const TRIES = 2
/** How often a chain is asked for whose CNAMEs are drawn, and how often in a row that may be in vain. */
const ROUNDS_MAX = 12
const VAIN_ROUNDS_MAX = 3
/** Records of one host, and ends of chains that are asked for by name. */
const RECORDS_MAX = 4096
const ENDS_MAX = 64

type Reply =
  | {
      readonly kind: 'answer'
      readonly answer: readonly ResourceRecord[]
      /** Of one without records. */
      readonly negativeTtlSeconds: number | undefined
    }
  | { readonly kind: 'failed'; readonly reason: string }

type Question = (name: string, type: number) => Promise<Reply>

/**
 * Asks a peer for one host: whole endpoints (v2) if it tells them, else what the operators of 2025 ask
 * for: addresses with the CNAMEs before them, and TXT. All or nothing: where one question fails, the host does.
 * Never rejects. `rootHost`: as in a PeerEndpoint.
 */
export async function askHost(
  peer: PeerAddress,
  rootHost: string,
  options: AskHostOptions,
): Promise<AskedHost> {
  const [server] = await resolvePeer(peer)
  if (server === undefined) return { kind: 'failed', reason: `there is no host ${peer.host}` }
  return askHostAt(server, printHostPort(peer), rootHost, options)
}

/** As `askHost`, of a peer whose address is known. `peer`: what it is called. */
export async function askHostAt(
  server: HostPort,
  peer: string,
  rootHost: string,
  options: AskHostOptions,
): Promise<AskedHost> {
  const question: Question = (name, type) => askOne(server, name, type, options)
  const host = rootHost.replace(/^\*\./, '')
  const exported = await question(`${V2_LABEL}.${host}.${KDRNT}`, RRType.TXT)
  if (exported.kind === 'failed') return exported
  const seenMs = options.nowMs()
  const place = { host, seenMs, exporter: peer }
  const { siteStates, problems } = readV2Host(rdataOf(exported.answer), place)
  const own = siteStates.filter((siteState) => siteState.rootHost === rootHost)
  if (own.length > 0) {
    // The records themselves have TTL 0: nobody is to keep them.
    const ttlSeconds = leastTtl(own.flatMap(({ endpoints }) => endpoints))
    return { kind: 'shares', siteStates: own, problems, ttlSeconds }
  }
  return askOld(question, { peer, rootHost, seenMs })
}

async function askOld(
  question: Question,
  place: { readonly peer: string; readonly rootHost: string; readonly seenMs: number },
): Promise<AskedHost> {
  const lists: Uint8Array[][] = []
  for (const prefix of ['w', 'g'] as const) {
    const names = metadataNames(prefix, place.rootHost)
    const replies = await Promise.all(names.map((name) => question(name, RRType.TXT)))
    const rdata: Uint8Array[] = []
    for (const reply of replies) {
      if (reply.kind === 'failed') return reply
      rdata.push(...rdataOf(reply.answer))
    }
    lists.push(unique(rdata))
  }
  const [weights = [], geos = []] = lists
  const found = await askChains(question, place.rootHost, weights.length + geos.length)
  if (found.kind === 'failed') return found
  const { answer, negativeTtlSeconds } = found
  if (answer.length === 0) return { kind: 'nothing', ttlSeconds: negativeTtlSeconds }
  const { siteState, problems } = readOldAnswers({ records: answer, weights, geos }, place)
  return { kind: 'shares', siteStates: [siteState], problems, ttlSeconds: leastTtl(answer) }
}

/**
 * The CNAMEs that lead on from the host, and the addresses at their ends. Of several CNAMEs of a name a peer draws
 * one: as long as the metadata tells of more than was found, we ask again.
 */
async function askChains(question: Question, rootHost: string, metadata: number): Promise<Reply> {
  const found = new Chains()
  let negativeTtlSeconds: number | undefined
  let vain = 0
  for (let round = 0; round < ROUNDS_MAX && vain < VAIN_ROUNDS_MAX; round++) {
    const reply = await question(`${rootHost}.${KDRNT}`, RRType.A)
    if (reply.kind === 'failed') return reply
    negativeTtlSeconds ??= reply.negativeTtlSeconds
    vain = found.take(reply.answer) ? 0 : vain + 1
    const { names } = found
    // The first CNAME of a chain has no metadata, as a rule.
    if (names === 0 || metadata === 0 || names > metadata) break
  }
  for (const type of [RRType.A, RRType.AAAA]) {
    // Without CNAMEs the addresses are those of the host, and A of it was asked for.
    if (type === RRType.A && found.names === 0) continue
    const names = found.endsWithout(type, `${rootHost}.${KDRNT}.`)
    const replies = await Promise.all(names.map((name) => question(name.replace(/\.$/, ''), type)))
    for (const reply of replies) {
      if (reply.kind === 'failed') return reply
      found.take(reply.answer)
    }
  }
  return { kind: 'answer', answer: found.records, negativeTtlSeconds }
}

/** Records of answers, each once. */
class Chains {
  readonly #records = new Map<string, ResourceRecord>()

  get records(): ResourceRecord[] {
    return [...this.#records.values()]
  }

  /** CNAMEs. */
  get names(): number {
    return this.records.filter(({ type }) => type === RRType.CNAME).length
  }

  /** False: nothing is new. */
  take(answer: readonly ResourceRecord[]): boolean {
    const before = this.#records.size
    for (const record of answer.slice(0, RECORDS_MAX)) {
      const { owner, type, rdata } = record
      const key = `${type} ${owner.length} ${printLatin1(owner)}${printLatin1(rdata)}`
      if (this.#records.size < RECORDS_MAX) this.#records.set(key, record)
    }
    return this.#records.size > before
  }

  /** Names at the end of a chain, in zone kdrnt, of which no address of that type is known; in lower case. */
  endsWithout(type: number, host: string): string[] {
    const own = this.records
    const names = own.filter((record) => record.type === RRType.CNAME)
    const owners = new Set(names.map(({ owner }) => nameKey(owner)))
    const answered = new Set(own.filter((r) => r.type === type).map(({ owner }) => nameKey(owner)))
    const ends = names
      .map(({ rdata }) => rdata)
      .filter((target) => {
        return isSubdomain(target, KDRNT_ZONE) && !owners.has(nameKey(target))
      })
    if (names.length === 0) ends.push(scanName(host) ?? KDRNT_ZONE)
    const missing = ends.filter((end) => !answered.has(nameKey(end)))
    return [...new Set(missing.map((end) => printName(end).toLowerCase()))].slice(0, ENDS_MAX)
  }
}

async function askOne(
  server: HostPort,
  name: string,
  type: number,
  { key, source = '', signal }: AskHostOptions,
): Promise<Reply> {
  const wire = scanName(`${name}.`)
  // A name that gets too long by what is in front of it is at no peer.
  if (wire === undefined) return { kind: 'answer', answer: [], negativeTtlSeconds: undefined }
  const limits = { timeoutMs: TIMEOUT_MS, tries: TRIES }
  const answered = await ask({
    server,
    query: questionOf(wire, type),
    ...limits,
    key,
    source,
    signal,
  })
  if (answered.kind === 'failed') return answered
  const { rcode, answer, authority } = answered.message
  if (rcode !== Rcode.NOERROR && rcode !== Rcode.NXDOMAIN) {
    return { kind: 'failed', reason: `it answers ${printRcode(rcode)}` }
  }
  return { kind: 'answer', answer, negativeTtlSeconds: negativeTtl(authority) }
}

function rdataOf(answer: readonly ResourceRecord[]): Uint8Array[] {
  return answer.filter(({ type }) => type === RRType.TXT).map(({ rdata }) => rdata)
}

function unique(list: readonly Uint8Array[]): Uint8Array[] {
  return [...new Map(list.map((rdata) => [printLatin1(rdata), rdata])).values()]
}
