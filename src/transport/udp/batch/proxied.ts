import type { Query } from '../../../dns/message/query.ts'
import { ProxiedDatagrams } from '../../proxy/datagrams.ts'
import { composeProxyHeader, ProxyHeader } from '../../proxy/header.ts'
import type { ProxyRules } from '../../proxy/rules.ts'
import type { Layout } from './layout.ts'
import * as layouts from './layout.ts'

const { UNIT_PACKET, UNIT_PROXY } = layouts

/**
 * The datagrams of a socket whose peers may be proxies. The message behind a header is copied to a place of its own, so
 * that it starts where a word starts:
 *
 *     unit:  [ sockaddr of the proxy | control | header, message ]       message ─▶ place of the layout
 */
export class ProxiedPackets {
  readonly #layout: Layout
  readonly #datagrams: ProxiedDatagrams
  readonly #place: Uint8Array
  #octets = 0

  constructor(layout: Layout, server: string, rules: ProxyRules) {
    this.#layout = layout
    this.#datagrams = new ProxiedDatagrams(server, rules)
    this.#place = layout.octets.subarray(layout.message, layout.message + layouts.MESSAGE_OCTETS)
  }

  use(rules: ProxyRules): void {
    this.#datagrams.use(rules)
  }

  /**
   * Replaces the packet of `query` by the message in it, and the peer by its client. The packet is at `at` of `octets`.
   * Returns false if it must be dropped. @hot
   */
  describe(query: Query, octets: Uint8Array, at: number): boolean {
    const end = at + query.packetOctets
    const from = this.#datagrams.open(query, octets, at, end)
    if (from === -1) return false
    const place = this.#place
    const count = end - from
    for (let i = 0; i < count; i++) place[i] = octets[from + i]!
    const { region, message } = this.#layout
    query.packet = place
    query.packetAt = region === -1 ? -1 : region + message
    query.packetOctets = count
    this.#octets = count
    return true
  }

  /**
   * Copies the message that was described last, with the addresses in front of it, which are at `unit`. A header names
   * the client, and the addresses have the length of the header.
   */
  copyUnit(unit: number, query: Query): Uint8Array {
    const header = this.#datagrams.isProxied ? composeProxyHeader(query) : undefined
    const start = UNIT_PACKET + (header?.length ?? 0)
    const copy = new Uint8Array(start + this.#octets)
    copy.set(this.#layout.octets.subarray(unit, unit + UNIT_PACKET))
    if (header !== undefined) copy.set(header, UNIT_PACKET)
    copy.set(this.#place.subarray(0, this.#octets), start)
    setProxyOctets(copy, header?.length ?? 0)
    return copy
  }
}

/** Writes into the addresses of a copied unit how many octets its PROXY header has. */
export function setProxyOctets(copy: Uint8Array, octets: number): void {
  copy[UNIT_PROXY] = octets >> 8
  copy[UNIT_PROXY + 1] = octets & 0xff
}

/** Describes the message in a copied unit. `query` has the addresses of the unit. */
export function describeCopy(copy: Uint8Array, query: Query): void {
  const octets = (copy[UNIT_PROXY]! << 8) | copy[UNIT_PROXY + 1]!
  query.packet = copy.subarray(UNIT_PACKET + octets)
  query.packetAt = -1
  query.packetOctets = query.packet.length
  query.proxyTlvsOctets = 0
  if (octets === 0) return
  const header = new ProxyHeader()
  header.read(copy, UNIT_PACKET, UNIT_PACKET + octets)
  header.describe(query, copy)
}
