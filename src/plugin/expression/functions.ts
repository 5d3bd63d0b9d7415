import { assert } from '../../base/assert.ts'
import { printClass, printType } from '../../dns/iana/index.ts'
import { Protocol, type Query } from '../../dns/message/query.ts'
import { printName } from '../../dns/name/name.ts'
import {
  type Address,
  type AddressFamily,
  type Cidr,
  isWithin,
  printAddress,
  scanAddress,
  scanCidr,
} from '../../dns/text/address.ts'
import type { BlockConfig } from '../directive.ts'
import { ANY_LABEL } from '../metadata.ts'
import type { Transaction } from '../transaction.ts'
import { ExpressionError, type Lexeme } from './lexer.ts'
import { EvaluationError, type Scope, type Term, type Value, type ValueType } from './term.ts'

interface QueryFunction {
  readonly type: ValueType
  readonly read: (query: Query) => Value
}

/** Bound of the length of a text with replacements, in characters: nested calls could make it huge. */
const REPLACED_LENGTH_MAX = 1 << 20
const UDP_PAYLOAD_MIN_OCTETS = 512
const TCP_PAYLOAD_OCTETS = 65_535

/** CoreDNS's functions about the query; they have no arguments. */
const QUERY_FUNCTIONS: ReadonlyMap<string, QueryFunction> = new Map<string, QueryFunction>([
  ['bufsize', { type: 'number', read: bufsizeOf }],
  ['class', { type: 'string', read: (query) => printClass(query.qclass) }],
  ['client_ip', { type: 'string', read: (query) => bracket(query.peerAddress, query.peerFamily) }],
  ['do', { type: 'boolean', read: (query) => query.dnssecOk }],
  ['id', { type: 'number', read: (query) => query.id }],
  ['name', { type: 'string', read: (query) => printName(query.qname) }],
  ['opcode', { type: 'number', read: (query) => query.opcode }],
  ['port', { type: 'string', read: (query) => String(query.peerPort) }],
  ['proto', { type: 'string', read: (query) => (query.protocol === Protocol.Udp ? 'udp' : 'tcp') }],
  [
    'server_ip',
    { type: 'string', read: (query) => bracket(query.localAddress, query.localFamily) },
  ],
  ['server_port', { type: 'string', read: (query) => String(query.localPort) }],
  ['size', { type: 'number', read: (query) => query.packetOctets }],
  ['type', { type: 'string', read: (query) => printType(query.qtype) }],
])

/** True if an expression of any scope may call the function. */
export function isFunction(name: string): boolean {
  return ['incidr', 'metadata', 'replace', 'group'].includes(name) || QUERY_FUNCTIONS.has(name)
}

/** A call of the function `name`. Throws ExpressionError for an unknown function or invalid arguments. */
export function callTerm(
  name: Lexeme,
  args: readonly Term[],
  block: BlockConfig,
  scope: Scope | undefined,
): Term {
  if (name.text === 'group' && scope !== undefined) return groupTerm(name, args, scope)
  if (name.text === 'replace') {
    requireArguments(name, args, 3)
    return replaceTerm(args)
  }
  if (name.text === 'incidr') {
    requireArguments(name, args, 2)
    return incidrTerm(name, args[0]!, args[1]!)
  }
  if (name.text === 'metadata') {
    requireArguments(name, args, 1)
    return metadataTerm(args[0]!, block)
  }
  const known = QUERY_FUNCTIONS.get(name.text)
  if (known === undefined) throw new ExpressionError(name.column, `unknown name ${name.text}`)
  requireArguments(name, args, 0)
  return { type: known.type, evaluate: (tx) => known.read(tx.query), call: name.text }
}

function requireCount(name: Lexeme, args: readonly Term[], count: number): void {
  if (args.length === count) return
  const what = args.length < count ? 'not enough' : 'too many'
  throw new ExpressionError(name.column, `${what} arguments to call ${name.text}`)
}

function requireArguments(name: Lexeme, args: readonly Term[], count: number): void {
  requireCount(name, args, count)
  if (args.some((arg) => arg.type !== 'string')) {
    throw new ExpressionError(name.column, `the arguments of ${name.text} must be strings`)
  }
}

function groupTerm(name: Lexeme, args: readonly Term[], { group }: Scope): Term {
  requireCount(name, args, 1)
  const [key] = args
  if (key?.type !== 'string' && key?.type !== 'number') {
    throw new ExpressionError(name.column, 'the argument of group must be a string or a number')
  }
  return { type: 'string', evaluate: (tx) => group(key.evaluate(tx) as string | number) }
}

/** `replace(text, old, new)`: all occurrences. */
function replaceTerm([text, old, replacement]: readonly Term[]): Term {
  return {
    type: 'string',
    evaluate: (tx) => {
      const from = text!.evaluate(tx) as string
      const to = replacement!.evaluate(tx) as string
      if ((from.length + 1) * (to.length + 1) > REPLACED_LENGTH_MAX) {
        throw new EvaluationError('the result of replace may be too long')
      }
      return from.replaceAll(old!.evaluate(tx) as string, () => to)
    },
  }
}

function metadataTerm(label: Term, block: BlockConfig): Term {
  block.metadata.read.add(typeof label.constant === 'string' ? label.constant : ANY_LABEL)
  return {
    type: 'string',
    evaluate: (tx) => {
      const name = label.evaluate(tx) as string
      const provide = block.metadata.find(name)
      if (provide === undefined) return ''
      if (block.metadata.locatesSubnet && name.startsWith('geoip/')) narrowScope(tx)
      return provide(tx)
    },
  }
}

/**
 * The view may decide differently for other networks, so the answer is only for the client's
 * network (RFC 7871 section 7.2.1). Nothing is known about its neighbours, so the scope is as
 * narrow as the source prefix.
 */
function narrowScope({ query, response }: Transaction): void {
  response.scopeBits = Math.max(response.scopeBits, query.ecsSourceBits)
}

/**
 * `incidr(ip, cidr)`. A literal network is read at load, and an address of the query is read in
 * place. So the usual `incidr(client_ip(), '192.0.2.0/24')` makes no text per query.
 */
function incidrTerm(name: Lexeme, ip: Term, cidr: Term): Term {
  if (typeof cidr.constant !== 'string') {
    const contains = (address: string, network: string) =>
      containsAddress(scanNetwork(network), scanHost(address))
    return {
      type: 'boolean',
      evaluate: (tx) => contains(ip.evaluate(tx) as string, cidr.evaluate(tx) as string),
    }
  }
  const network = scanCidr(cidr.constant)
  if (network === undefined) {
    throw new ExpressionError(name.column, `invalid CIDR address: ${cidr.constant}`)
  }
  if (ip.call === 'client_ip') {
    return {
      type: 'boolean',
      evaluate: ({ query }) => isWithin(network, query.peerAddress, query.peerFamily),
    }
  }
  return {
    type: 'boolean',
    evaluate: (tx) => containsAddress(network, scanHost(ip.evaluate(tx) as string)),
  }
}

function scanNetwork(text: string): Cidr {
  const network = scanCidr(text)
  if (network === undefined) throw new EvaluationError(`invalid CIDR address: ${text}`)
  return network
}

/** `client_ip()` puts IPv6 addresses in brackets. */
function scanHost(text: string): Address {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  const address = scanAddress(bare)
  if (address === undefined) throw new EvaluationError('first argument is not an IP address')
  return address
}

function containsAddress(network: Cidr, address: Address): boolean {
  return isWithin(network, address.bytes, address.family)
}

function bracket(address: Uint8Array, family: number): string {
  assert(family === 1 || family === 2, 'an address has a family')
  const text = printAddress(address, family satisfies AddressFamily)
  return text.includes(':') ? `[${text}]` : text
}

function bufsizeOf(query: Query): number {
  if (query.protocol !== Protocol.Udp) return TCP_PAYLOAD_OCTETS
  return Math.max(UDP_PAYLOAD_MIN_OCTETS, query.payloadOctets)
}
