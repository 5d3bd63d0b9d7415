import { printLatin1 } from '../base/latin1.ts'
import { ask, questionOf } from '../client/ask.ts'
import type { HostPort } from '../dns/host-port.ts'
import { printRcode, Rcode, RRType } from '../dns/iana/index.ts'
import type { ResourceRecord } from '../dns/message/message.ts'
import { isSubdomain, nameKey, printName, scanName } from '../dns/name/name.ts'
import type { TsigKey } from '../dns/tsig/key.ts'
import { V2_LABEL } from '../records/kdrnt.ts'
import { KDRNT, KDRNT_ZONE } from '../records/local-zone.ts'
import { leastTtl, negativeTtl } from './least-ttl.ts'
import { metadataNames } from './old-metadata.ts'
import type { SiteState } from './peer-endpoint.ts'
import { readOldAnswers } from './read-v1.ts'
import { readV2Host } from './read-v2.ts'

/** How to query a peer. */
interface AskHostOptions {
  /** Signs the questions; replies must be signed with it too. */
  readonly key?: TsigKey | undefined
  /** Source address of the queries; absent or '' = any. */
  readonly source?: string
  readonly signal?: AbortSignal | undefined
  /** Monotonic milliseconds. */
  readonly nowMs: () => number
  /** Unix time; missing = any creation time of a record is possible. */
  readonly nowSeconds?: () => number
}

/** The answer of one peer for one host. */
export type AskedHost =
  /**
   * For v2, one state per site that the peer reports. `problems`: what was refused in the answer;
   * quotes the peer's text. `ttlSeconds`: the lowest TTL of the endpoints; undefined = not known.
   */
  | {
      readonly kind: 'shares'
      readonly siteStates: readonly SiteState[]
      readonly problems: readonly string[]
      readonly ttlSeconds: number | undefined
    }
  /**
   * The peer does not have the host. `ttlSeconds`: how long that is valid, from the SOA; undefined
   * = the reply had no SOA.
   */
  | { readonly kind: 'nothing'; readonly ttlSeconds: number | undefined }
  | { readonly kind: 'failed'; readonly reason: string }

/** Limits of one question over UDP. A peer that needs more time is too far away to be useful. */
const TIMEOUT_MS = 1500
const TRIES = 2
/**
 * If a peer picks a CNAME at random, its chain is queried several times: at most ROUNDS_MAX times,
 * and at most VAIN_ROUNDS_MAX times in a row without a new record.
 */
const ROUNDS_MAX = 12
const VAIN_ROUNDS_MAX = 3
/** Maximum of records of one host, and of chain ends that are queried by name. */
const RECORDS_MAX = 4096
const ENDS_MAX = 64

type Reply =
  | {
      readonly kind: 'answer'
      readonly answer: readonly ResourceRecord[]
      /** For a reply without records. */
      readonly negativeTtlSeconds: number | undefined
    }
  | { readonly kind: 'failed'; readonly reason: string }

type Question = (name: string, type: number) => Promise<Reply>

/**
 * Queries a peer for one host. If the peer exports whole endpoints (v2), these are the result. Else
 * it sends the queries that the operators of 2025 send: addresses with the CNAMEs before them, and
 * TXT. If one question fails, the whole host fails. Never rejects. `peer`: its name in states and
 * messages. `rootHost`: as in a PeerEndpoint.
 */
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
  const place = { host, seenMs, exporter: peer, nowSeconds: options.nowSeconds?.() }
  const { siteStates, problems } = readV2Host(rdataOf(exported.answer), place)
  const own = siteStates.filter((siteState) => siteState.rootHost === rootHost)
  if (own.length > 0) {
    // The records themselves have TTL 0, so that resolvers do not cache them.
    const ttlSeconds = leastTtl(
      own.flatMap(({ endpoints }) => endpoints.map(({ endpoint }) => endpoint)),
    )
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
 * Returns the CNAMEs that the host leads to, and the addresses at their ends. If a name has several
 * CNAMEs, a peer returns one at random. So the query is repeated as long as the metadata lists more
 * names than were found.
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
    // The first CNAME of a chain usually has no metadata.
    if (names === 0 || metadata === 0 || names > metadata) break
  }
  for (const type of [RRType.A, RRType.AAAA]) {
    // Without CNAMEs the addresses belong to the host, and its A records are already queried.
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

/** The records of several answers, each once. */
class Chains {
  readonly #records = new Map<string, ResourceRecord>()

  get records(): ResourceRecord[] {
    return [...this.#records.values()]
  }

  /** Number of CNAMEs. */
  get names(): number {
    return this.records.filter(({ type }) => type === RRType.CNAME).length
  }

  /** Adds records. Returns false if none of them is new. */
  take(answer: readonly ResourceRecord[]): boolean {
    const before = this.#records.size
    for (const record of answer.slice(0, RECORDS_MAX)) {
      const { owner, type, rdata } = record
      const key = `${type} ${owner.length} ${printLatin1(owner)}${printLatin1(rdata)}`
      if (this.#records.size < RECORDS_MAX) this.#records.set(key, record)
    }
    return this.#records.size > before
  }

  /**
   * Returns the names at the end of a chain, in zone kdrnt, that have no known address of that
   * type; in lower case.
   */
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
  // If the prefix makes the name too long, no peer can have it.
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
    return { kind: 'failed', reason: `the peer answered ${printRcode(rcode)}` }
  }
  return { kind: 'answer', answer, negativeTtlSeconds: negativeTtl(authority) }
}

function rdataOf(answer: readonly ResourceRecord[]): Uint8Array[] {
  return answer.filter(({ type }) => type === RRType.TXT).map(({ rdata }) => rdata)
}

function unique(list: readonly Uint8Array[]): Uint8Array[] {
  return [...new Map(list.map((rdata) => [printLatin1(rdata), rdata])).values()]
}
