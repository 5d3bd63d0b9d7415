import type { Socket } from 'node:net'
import { type Peer, peerOf } from '../base/places.ts'
import type { Query } from '../dns/message/query.ts'
import { parsePeerAddress } from './peer-address.ts'
import { composeProxyHeader, HeaderRead, ProxyHeader } from './proxy/header.ts'
import { ProxyAction, ProxyFault, type ProxyRules } from './proxy/rules.ts'

const NO_OCTETS = new Uint8Array(0)

/** Results of `ConnectionEnds.readHeader`. */
export const NEEDS_MORE = -1
export const REFUSED = -2

/** How a listener treats PROXY headers. `server`: the address of the plan. */
export interface StreamProxy {
  readonly server: string
  readonly rules: ProxyRules
}

/** The two ends of a TCP connection. If its first octets are a PROXY header, the client in it is the peer. */
export class ConnectionEnds {
  #peerFamily: number
  #peerPort: number
  readonly #peerAddress: Uint8Array = new Uint8Array(16)
  #tlvs: Uint8Array = NO_OCTETS
  readonly #localAddress: Uint8Array = new Uint8Array(16)
  readonly #localFamily: number
  readonly #localPort: number
  readonly #proxy: StreamProxy | undefined
  readonly #action: ProxyAction
  /** True until it is known whether the connection starts with a header. */
  awaitsHeader: boolean
  /** True if the peer is the client of a header. */
  #isProxied = false
  peer: Peer

  /** `peer`: that of the socket. `proxy`: undefined = the connection has no header. */
  constructor(socket: Socket, peer: Peer, proxy: StreamProxy | undefined) {
    this.peer = peer
    this.#peerFamily = parsePeerAddress(socket.remoteAddress ?? '', this.#peerAddress)
    this.#peerPort = socket.remotePort ?? 0
    this.#localFamily = parsePeerAddress(socket.localAddress ?? '', this.#localAddress)
    this.#localPort = socket.localPort ?? 0
    this.#proxy = proxy
    this.#action = proxy?.rules.actionFor(this.#peerAddress, this.#peerFamily) ?? ProxyAction.Skip
    this.awaitsHeader = this.#action !== ProxyAction.Skip
  }

  describe(query: Query): void {
    query.peerAddress.set(this.#peerAddress)
    query.peerFamily = this.#peerFamily
    query.peerPort = this.#peerPort
    query.proxyTlvs = this.#tlvs
    query.proxyTlvsAt = 0
    query.proxyTlvsOctets = this.#tlvs.length
    query.localAddress = this.#localAddress
    query.localFamily = this.#localFamily
    query.localPort = this.#localPort
  }

  /**
   * Reads the header that the connection starts with, at `at` of octets that end before `end`. Returns its length, 0
   * without a header, NEEDS_MORE, or REFUSED: the connection must be cut.
   */
  readHeader(octets: Uint8Array, at: number, end: number): number {
    if (at === end) return NEEDS_MORE
    const header = new ProxyHeader()
    const found = header.read(octets, at, end)
    if (found === HeaderRead.Partial) return NEEDS_MORE
    this.awaitsHeader = false
    if (found === HeaderRead.None) return 0
    if (found === HeaderRead.Malformed) return this.#refuse(ProxyFault.Malformed)
    if (this.#action === ProxyAction.Reject) return this.#refuse(ProxyFault.Rejected)
    if (this.#action === ProxyAction.Use && header.family !== 0) this.#take(header, octets)
    return header.octets
  }

  /** For a process that takes the connection over: a header with the client; no octets = the peer sends the queries. */
  composeHeader(): Uint8Array {
    if (!this.#isProxied) return NO_OCTETS
    return composeProxyHeader({
      peerAddress: this.#peerAddress,
      peerFamily: this.#peerFamily,
      peerPort: this.#peerPort,
      proxyTlvs: this.#tlvs,
      proxyTlvsAt: 0,
      proxyTlvsOctets: this.#tlvs.length,
    })
  }

  /** Takes the client from `composeHeader` of another process. */
  adopt(composed: Uint8Array): void {
    const header = new ProxyHeader()
    const found = header.read(composed, 0, composed.length)
    if (found === HeaderRead.Whole && header.family !== 0) this.#take(header, composed)
  }

  #take(header: ProxyHeader, octets: Uint8Array): void {
    this.#isProxied = true
    this.#peerAddress.set(header.address)
    this.#peerFamily = header.family
    this.#peerPort = header.port
    this.peer = peerOf(header.address, header.family === 1)
    const { tlvsAt, tlvsOctets } = header
    if (this.#proxy?.rules.keepsTlvs === true) {
      this.#tlvs = octets.slice(tlvsAt, tlvsAt + tlvsOctets)
    }
  }

  #refuse(fault: ProxyFault): number {
    const { server, rules } = this.#proxy!
    rules.noteFault(server, fault, this.#peerAddress, this.#peerFamily)
    return REFUSED
  }
}
