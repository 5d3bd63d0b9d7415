import { RRClass } from '../dns/iana/classes.ts'
import type { Query } from '../dns/message/query.ts'
import { setQname } from '../dns/message/set-qname.ts'
import type { Transaction } from '../plugin/transaction.ts'

/** Octets of type and class after the qname. */
const QUESTION_FIXED_OCTETS = 4

/**
 * Makes `nested` the query that the client of `tx` would send for (`qname`, `qtype`): same
 * addresses, same EDNS, one step deeper in the chain of aliases. `qname`: lower-case wire form;
 * other octets may follow it.
 */
export function prepareInternalLookup(
  nested: Transaction,
  tx: Transaction,
  qname: Uint8Array,
  qtype: number,
): void {
  copyOrigin(nested.query, tx.query)
  takePeerAsClient(nested.query)
  copyEdns(nested.query, tx.query)
  setQuestion(nested.query, qname, qtype)
  nested.response.reset(nested.query)
  nested.zone = ''
  nested.view = ''
  nested.chainDepth = tx.chainDepth + 1
  nested.startedMs = tx.startedMs
  nested.deadlineMs = tx.deadlineMs
  nested.finishedMs = 0
  nested.tsigKey = undefined
  nested.stream = undefined
  nested.sentOctets = -1
}

/** Makes `copy` ask what `tx` asks, independent of it. */
export function repeatQuery(copy: Transaction, tx: Transaction): void {
  prepareInternalLookup(copy, tx, tx.query.qname, tx.query.qtype)
  const { query } = copy
  query.qclass = tx.query.qclass
  query.packet = query.packet.slice(0, query.packetOctets)
  query.packetAt = -1
  query.proxyTlvs = query.proxyTlvs.slice(
    query.proxyTlvsAt,
    query.proxyTlvsAt + query.proxyTlvsOctets,
  )
  query.proxyTlvsAt = 0
  if (tx.query.clientIsEcs) {
    query.clientAddress = query.ecsAddress
    query.clientFamily = query.ecsFamily
    query.clientBits = query.ecsSourceBits
    query.clientIsEcs = true
  }
  copy.zone = tx.zone
  copy.view = tx.view
  copy.chainDepth = tx.chainDepth
  copy.deadlineMs = Number.POSITIVE_INFINITY
}

function copyOrigin(to: Query, from: Query): void {
  to.packet = from.packet
  to.packetAt = from.packetAt
  to.packetOctets = from.packetOctets
  to.id = from.id
  to.flags = from.flags
  to.opcode = from.opcode
  to.protocol = from.protocol
  to.peerAddress.set(from.peerAddress)
  to.peerFamily = from.peerFamily
  to.peerPort = from.peerPort
  to.proxyTlvs = from.proxyTlvs
  to.proxyTlvsAt = from.proxyTlvsAt
  to.proxyTlvsOctets = from.proxyTlvsOctets
  to.localAddress = from.localAddress
  to.localFamily = from.localFamily
  to.localPort = from.localPort
  to.tsigOffset = from.tsigOffset
}

/**
 * Makes the sender of a query its client. The ECS address becomes the client only if a block
 * requests that.
 */
export function takePeerAsClient(query: Query): void {
  query.clientAddress = query.peerAddress
  query.clientFamily = query.peerFamily
  query.clientBits = query.peerFamily === 1 ? 32 : 128
  query.clientIsEcs = false
}

function copyEdns(to: Query, from: Query): void {
  to.hasEdns = from.hasEdns
  to.ednsVersion = from.ednsVersion
  to.payloadOctets = from.payloadOctets
  to.dnssecOk = from.dnssecOk
  to.compactOk = from.compactOk
  to.nsidRequested = from.nsidRequested
  to.zoneVersionRequested = from.zoneVersionRequested
  to.cookieOffset = from.cookieOffset
  to.cookieOctets = from.cookieOctets
  to.hasEcs = from.hasEcs
  to.ecsFamily = from.ecsFamily
  to.ecsSourceBits = from.ecsSourceBits
  to.ecsAddress.set(from.ecsAddress)
  to.keepaliveRequested = from.keepaliveRequested
}

function setQuestion(query: Query, qname: Uint8Array, qtype: number): void {
  setQname(query, qname)
  query.questionOctets = query.qnameOctets + QUESTION_FIXED_OCTETS
  query.qtype = qtype
  query.qclass = RRClass.IN
}
