import type { Clock } from '../../base/clock.ts'
import { copyOctets } from '../../base/octets.ts'
import type { OctetChannel } from '../../base/telemetry/octet-channel.ts'
import { Protocol } from '../../dns/message/query.ts'
import { finishedMs } from '../../plugin/status.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/*
 * A query and its reply before they are dnstap messages, in the machine's byte order. Entries are made where queries
 * are answered, and encoded by the control thread. An entry starts at a multiple of 8 octets.
 *
 *     OCTETS    of the entry, a multiple of 8
 *     MANNER    bits: over TCP, client over IPv6, destination over IPv6, a reply was sent
 *     PORTS     of the client (16), of the destination (16)
 *     MESSAGES  octets of the query (16), of the reply (16); 0 = not kept
 *     EXTRA     octets of the text
 *     (unused)
 *     TIMES     two 64-bit floating-point numbers: milliseconds since the Unix epoch, of the query and of the reply
 *     PEER, LOCAL  addresses, four integers each
 *     DATA      query, reply, extra, in octets
 */
export const OCTETS = 0
export const MANNER = 1
export const PORTS = 2
export const MESSAGES = 3
export const EXTRA = 4
export const TIMES = 6
export const PEER = 10
export const LOCAL = 14
export const DATA = 18

export const OVER_TCP = 1
export const PEER_IPV6 = 2
export const LOCAL_IPV6 = 4
export const REPLIED = 8

/** Longest text of each kind in a message. An `extra` that depends on the query is cut. */
export const TEXT_OCTETS_MAX = 1024
const MESSAGE_OCTETS_MAX = 65_535
export const ENTRY_OCTETS_MAX = DATA * 4 + 2 * MESSAGE_OCTETS_MAX + TEXT_OCTETS_MAX + 8

/** How far the wall clock may differ from what is known of it. `Clock.now` has whole milliseconds. */
const WALL_DIFFERENCE_MS = 2
const WALL_PERIOD_MS = 1000

/** Converts monotonic milliseconds to milliseconds since the Unix epoch, with the digits below one. */
class WallTime {
  readonly #clock: Clock
  #offsetMs = 0
  #checkMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns what to add to monotonic times near `monotonicMs`. @hot */
  offsetAt(monotonicMs: number): number {
    if (monotonicMs >= this.#checkMs) this.#check(monotonicMs)
    return this.#offsetMs
  }

  #check(monotonicMs: number): void {
    this.#checkMs = monotonicMs + WALL_PERIOD_MS
    const offsetMs = this.#clock.now() - this.#clock.monotonic()
    const isSet = Math.abs(offsetMs - this.#offsetMs) > WALL_DIFFERENCE_MS
    // The time read is up to one millisecond behind, so the largest difference is the best one.
    if (isSet || offsetMs > this.#offsetMs) this.#offsetMs = offsetMs
  }
}

/** Writes entries to a channel. */
export class EntryWriter {
  readonly #out: OctetChannel
  readonly #clock: Clock
  readonly #wall: WallTime
  readonly #keepsMessages: boolean
  readonly #words: Int32Array
  readonly #numbers: Float64Array

  /** `keepsMessages`: whether entries have the messages. */
  constructor(out: OctetChannel, clock: Clock, keepsMessages: boolean) {
    const { buffer, byteOffset, length } = out.octets
    this.#out = out
    this.#clock = clock
    this.#wall = new WallTime(clock)
    this.#keepsMessages = keepsMessages
    this.#words = new Int32Array(buffer, byteOffset, length >> 2)
    this.#numbers = new Float64Array(buffer, byteOffset, length >> 3)
  }

  /** `replyOctets`: as in `QueryTap.see`. Returns false if there is no room. @hot */
  write(tx: Transaction, replyOctets: number, extra: string): boolean {
    const { query } = tx
    const { octets } = this.#out
    const words = this.#words
    const isReplied = replyOctets > 0
    const queryKept = this.#keepsMessages ? query.packetOctets : 0
    const replyKept = this.#keepsMessages && isReplied ? replyOctets : 0
    const extraMax = extra === '' ? 0 : TEXT_OCTETS_MAX
    const start = this.#out.begin(DATA * 4 + queryKept + replyKept + extraMax + 8)
    if (start === -1) return false
    const at = start >> 2
    words[at + MANNER] = mannerOf(tx) | (isReplied ? REPLIED : 0)
    words[at + PORTS] = query.peerPort | (query.localPort << 16)
    words[at + MESSAGES] = queryKept | (replyKept << 16)
    const offsetMs = this.#wall.offsetAt(tx.startedMs)
    this.#numbers[(at + TIMES) >> 1] = tx.startedMs + offsetMs
    this.#numbers[((at + TIMES) >> 1) + 1] = finishedMs(tx, this.#clock) + offsetMs
    putAddress(words, at + PEER, query.peerAddress, query.peerFamily)
    putAddress(words, at + LOCAL, query.localAddress, query.localFamily)
    let end = start + DATA * 4
    copyOctets(query.packet, 0, octets, end, queryKept)
    end += queryKept
    copyOctets(tx.out, 0, octets, end, replyKept)
    end += replyKept
    const extraOctets = extra === '' ? 0 : octets.write(extra, end, TEXT_OCTETS_MAX)
    words[at + EXTRA] = extraOctets
    end = (end + extraOctets + 7) & ~7
    words[at + OCTETS] = end - start
    this.#out.end(end)
    return true
  }
}

function mannerOf({ query }: Transaction): number {
  return (
    (query.protocol === Protocol.Udp ? 0 : OVER_TCP) |
    (query.peerFamily === 1 ? 0 : PEER_IPV6) |
    (query.localFamily === 1 ? 0 : LOCAL_IPV6)
  )
}

function putAddress(words: Int32Array, at: number, octets: Uint8Array, family: number): void {
  words[at] = wordAt(octets, 0)
  if (family === 1) return
  words[at + 1] = wordAt(octets, 4)
  words[at + 2] = wordAt(octets, 8)
  words[at + 3] = wordAt(octets, 12)
}

function wordAt(octets: Uint8Array, i: number): number {
  return octets[i]! | (octets[i + 1]! << 8) | (octets[i + 2]! << 16) | (octets[i + 3]! << 24)
}
