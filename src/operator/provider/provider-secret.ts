import { printHostPort } from '../../dns/host-port.ts'
import { scanName } from '../../dns/name/name.ts'
import type { Cidr } from '../../dns/text/address.ts'
import { ALGORITHM_NAMES, HMAC_SHA256, scanAlgorithm } from '../../dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../dns/tsig/key.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { type PeerRule, scanPeerRules } from '../../peering/trust/peer-rule.ts'
import { KDRNT } from '../../records/local-zone.ts'
import { scanHost } from '../../records/validate/names.ts'
import { type Nameserver, scanNameserver } from './nameserver.ts'
import { secretText } from './secret-data.ts'

export const COREDNS_SECRET_TYPE = 'kuadrant.io/coredns'

/** Bounds on one Secret. */
const ZONES_MAX = 1000
const NAMESERVERS_MAX = 64
/** Base64, RFC 4648 section 4. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/** A valid provider Secret of type `kuadrant.io/coredns`. */
export interface Provider {
  readonly secretName: string
  /**
   * Lower case, without the final dot, in the given order. A zone that is named twice is listed
   * twice.
   */
  readonly zones: readonly string[]
  /** Without duplicates. */
  readonly nameservers: readonly Nameserver[]
  /** Signs queries and zone transfers; undefined = they are unsigned. */
  readonly tsigKey: TsigKey | undefined
  /** What its nameservers may report in addition to what every peer may report. */
  readonly rules: readonly PeerRule[]
}

/**
 * Reads the keys of a provider Secret: `ZONES`, `NAMESERVERS`, `PEERS_ALLOW`, and `TSIG_NAME`,
 * `TSIG_ALGORITHM` and `TSIG_SECRET`. Returns an error message if a value is invalid; it never
 * contains a secret. `allowed`: networks of nameservers that are refused otherwise.
 */
export function readProvider(secret: ApiObject, allowed: readonly Cidr[] = []): Provider | string {
  const zones = readZones(secretText(secret, 'ZONES'))
  if (typeof zones === 'string') return zones
  const nameservers = readNameservers(secretText(secret, 'NAMESERVERS'), allowed)
  if (typeof nameservers === 'string') return nameservers
  const tsigKey = readTsigKey(secret)
  if (typeof tsigKey === 'string') return tsigKey
  const rules = scanPeerRules(secretText(secret, 'PEERS_ALLOW'))
  if (typeof rules === 'string') return `PEERS_ALLOW: ${rules}`
  return { secretName: textOf(secret.metadata, 'name'), zones, nameservers, tsigKey, rules }
}

function readZones(text: string): readonly string[] | string {
  const items = splitList(text)
  if (items.length === 0) return 'CoreDNS Provider credentials does not contain ZONES'
  if (items.length > ZONES_MAX)
    return `ZONES has ${items.length} zones, at most ${ZONES_MAX} are allowed`
  const zones: string[] = []
  for (const item of items) {
    const zone = item.toLowerCase().replace(/\.$/, '')
    if (zone.includes('*') || scanHost(zone) === undefined) {
      return `ZONES: ${JSON.stringify(item)} is not a domain name`
    }
    if (zone === KDRNT || zone.endsWith(`.${KDRNT}`)) {
      return `ZONES: ${item} is reserved for the exchange between peers; remove it`
    }
    zones.push(zone)
  }
  return zones
}

function readNameservers(text: string, allowed: readonly Cidr[]): readonly Nameserver[] | string {
  const items = splitList(text)
  if (items.length > NAMESERVERS_MAX) {
    return `NAMESERVERS has ${items.length} servers, at most ${NAMESERVERS_MAX} are allowed`
  }
  const nameservers = new Map<string, Nameserver>()
  for (const item of items) {
    const nameserver = scanNameserver(item, allowed)
    if (typeof nameserver === 'string') return `NAMESERVERS: ${nameserver}`
    nameservers.set(printHostPort(nameserver), nameserver)
  }
  return [...nameservers.values()]
}

function readTsigKey(secret: ApiObject): TsigKey | undefined | string {
  const [nameText, algorithmText, secretText64] = [
    'TSIG_NAME',
    'TSIG_ALGORITHM',
    'TSIG_SECRET',
  ].map((key) => secretText(secret, key)) as [string, string, string]
  if (nameText === '' && secretText64 === '') {
    return algorithmText === ''
      ? undefined
      : 'TSIG_ALGORITHM is set without TSIG_NAME; set TSIG_NAME and TSIG_SECRET'
  }
  if (nameText === '') return 'TSIG_SECRET is set without TSIG_NAME; set both'
  if (secretText64 === '') return 'TSIG_NAME is set without TSIG_SECRET; set both'
  const name = scanName(nameText.endsWith('.') ? nameText : `${nameText}.`)
  if (name === undefined) return `TSIG_NAME: ${JSON.stringify(nameText)} is not a domain name`
  const algorithm = algorithmText === '' ? HMAC_SHA256 : scanAlgorithm(absolute(algorithmText))
  if (algorithm === undefined) {
    return `TSIG_ALGORITHM: ${JSON.stringify(algorithmText)} is not supported; use one of ${ALGORITHM_NAMES}`
  }
  const octets = Buffer.from(secretText64, 'base64')
  if (!BASE64.test(secretText64) || octets.length === 0) {
    return 'TSIG_SECRET is not base64; its value must be base64 before the Secret encodes it'
  }
  return createTsigKey(name, algorithm, octets)
}

function absolute(name: string): string {
  return name.endsWith('.') ? name : `${name}.`
}

/**
 * The items of a comma-separated list, without surrounding white space; empty items are skipped.
 */
function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
