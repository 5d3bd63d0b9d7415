import type { Cidr } from '../../../dns/text/address.ts'
import { printCidr, printPeers } from './address-spans.ts'
import { ALLOW_SETS, type AllowSetName } from './allowed-element.ts'
import { type Chain, CLIENT_CHAIN, DROP, fillChains } from './chain.ts'
import { digestOf } from './profile.ts'
import type { TableListing } from './table-listing.ts'

export interface EgressTableOptions {
  /** Name of the table, of the family `inet`. */
  readonly table: string
  /** Elements that all sets of addresses can have together. */
  readonly elementsMax: number
  /** Networks of Pods, Services and nodes: connections to them are left to others. */
  readonly clusterNetworks: readonly Cidr[]
  /** The port of this host where DNS queries of clients go to, whatever server they ask. */
  readonly dnsPort: number
  /** Networks of Pods: one whose address is unknown may only connect to `clusterNetworks`. */
  readonly closedNetworks?: readonly Cidr[]
  /**
   * Addresses of this host where DNS queries of clients go to, at most one of each family. Of a family without
   * one, they go to the address of the interface that they come from; if it has none, they are lost.
   */
  readonly dnsAddresses: readonly string[]
  /** True: connections of clients may be removed from the connection tracking table, to end them. */
  readonly cutsConnections: boolean
}

/**
 * A chain without rules, whose name is the form of the table. Change its number with the types of sets and the hooks
 * of chains: a table of another form is made again.
 */
export const FORM_CHAIN = 'form_2'

/** How the name of the chain begins that identifies the options of the table. */
const OPTIONS_PREFIX = 'options_'

/** DNS over TLS and QUIC: this server does not see the answers, so clients must not use it. */
const ENCRYPTED_DNS_PORT = 853

const VERSIONS = [
  ['ip', 4],
  ['ip6', 6],
] as const

/**
 * The statements that create the table, or bring one of the same form to these options. Clients, their profiles, and
 * what they are allowed stay.
 *
 *     forward ─▶ profile of the client ─▶ established ─▶ cluster ─▶ allow sets ─▶ networks of its rules
 *     dnsqueries ─▶ is it a client? ─▶ DNS is redirected to this host
 *
 * A Pod that no policy selects is not affected. If this process ends, the table stays: open
 * connections continue, and no new address is allowed.
 */
export function tableStatements(options: EgressTableOptions): readonly string[] {
  const { table } = options
  const statements = [`add table inet ${table}`]
  const add = (kind: 'set' | 'map', name: string, body: string): number =>
    statements.push(`add ${kind} inet ${table} ${name} { ${body} }`)
  for (const [, version] of VERSIONS) {
    const address = `ipv${version}_addr`
    add('set', `clients${version}`, `type ${address};`)
    add('map', `profiles${version}`, `type ${address} : verdict;`)
    add('set', `cluster${version}`, `type ${address}; flags interval;`)
    statements.push(`flush set inet ${table} cluster${version}`)
    const networks = clusterElements(version, options)
    if (networks.length === 0) continue
    statements.push(`add element inet ${table} cluster${version} { ${networks.join(', ')} }`)
  }
  for (const name of ALLOW_SETS) add('set', name, allowSetBody(name, options))
  statements.push(...fillChains(table, tableChains(options)))
  return statements
}

/**
 * Drops late segments of the server of an ended connection. They would open a new one, to which the client
 * could reply.
 */
const LATE_SEGMENTS = VERSIONS.map(([ip, version]) => {
  return `${ip} daddr @clients${version} tcp flags & syn == 0 ct state new ${DROP}`
})

/** For Pods whose address is not in a map of profiles. */
const UNKNOWN_CHAIN = 'unknown'
const UNKNOWN_RULES = [
  'ct state established,related accept',
  ...VERSIONS.map(([ip, version]) => `${ip} daddr @cluster${version} accept`),
  DROP,
]

function unknownJumps({ closedNetworks = [] }: EgressTableOptions): readonly string[] {
  return VERSIONS.flatMap(([ip, version]) => {
    const peers = closedNetworks.map((network) => ({ network, except: [] }))
    const spans = printPeers(peers, version === 4 ? 1 : 2)
    if (spans === 'all') return [`meta nfproto ipv${version} jump ${UNKNOWN_CHAIN}`]
    if (spans.length === 0) return []
    const set = spans.length === 1 ? spans[0]! : `{ ${spans.join(', ')} }`
    return [`${ip} saddr ${set} jump ${UNKNOWN_CHAIN}`]
  })
}

/** The chains that do not depend on clients. */
export function tableChains(options: EgressTableOptions): readonly Chain[] {
  const client = [
    `meta l4proto { 6, 17 } th dport ${ENCRYPTED_DNS_PORT} ${DROP}`,
    'ct state established,related accept',
  ]
  for (const [ip, version] of VERSIONS) {
    const pair = `${ip} saddr . ${ip} daddr`
    client.push(`${ip} daddr @cluster${version} accept`, `${pair} @any${version} accept`)
    for (const kind of ['port', 'range'] as const) {
      client.push(`${pair} . meta l4proto . th dport @${kind}${version} accept`)
    }
  }
  // Without neighbour discovery, an IPv6 client has no router. Packets that were routed have a lower limit
  // (RFC 4861 section 3.1): they would carry data to anywhere.
  const discovery = '{ nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit }'
  client.push(`ip6 hoplimit 255 icmpv6 type ${discovery} accept`)
  return [
    {
      name: 'forward',
      base: 'type filter hook forward priority -10; policy accept;',
      rules: [
        ...VERSIONS.map(([ip, version]) => `${ip} saddr vmap @profiles${version}`),
        ...unknownJumps(options),
        ...(options.cutsConnections ? LATE_SEGMENTS : []),
      ],
    },
    {
      name: 'dnsqueries',
      base: 'type nat hook prerouting priority -110; policy accept;',
      rules: VERSIONS.map(([ip, version]) => {
        const queries = `${ip} saddr @clients${version} meta l4proto { 6, 17 } th dport 53`
        return `${queries} ${targetOf(version, options)}`
      }),
    },
    { name: CLIENT_CHAIN, base: '', rules: client },
    { name: UNKNOWN_CHAIN, base: '', rules: UNKNOWN_RULES },
    { name: FORM_CHAIN, base: '', rules: [] },
    { name: optionsChain(options), base: '', rules: [] },
  ]
}

/**
 * The name of a chain without rules that shows whose options the table has. So a process notices a table that one with
 * other options has written beside it, during a reload or an upgrade.
 */
export function optionsChain(parts: EgressTableOptions): string {
  const { clusterNetworks, closedNetworks = [], ...options } = parts
  const { dnsPort, dnsAddresses, elementsMax, cutsConnections } = options
  const values = [
    dnsPort,
    dnsAddresses,
    elementsMax,
    cutsConnections,
    clusterNetworks.map(printCidr),
    closedNetworks.map(printCidr),
  ]
  return `${OPTIONS_PREFIX}${digestOf(JSON.stringify(values))}`
}

/** Chains that identify the options of other processes. */
export function otherOptions({ chains }: TableListing, own: string): readonly string[] {
  return [...chains.keys()].filter((name) => name.startsWith(OPTIONS_PREFIX) && name !== own)
}

/** What others removed of the chains and of the networks of `cluster`; undefined = nothing. */
export function lostRules(
  { chains, elements }: TableListing,
  profiles: readonly Chain[],
  options: EgressTableOptions,
): string | undefined {
  const wanted = [...tableChains(options), ...profiles]
  const lost = wanted.find(({ name, rules }) => chains.get(name) !== rules.length)
  if (lost !== undefined) return `rules of chain ${lost.name}`
  for (const [, version] of VERSIONS) {
    const count = elements.get(`cluster${version}`)?.length ?? 0
    if (count !== clusterElements(version, options).length) return `set cluster${version}`
  }
  return undefined
}

/** The networks of `cluster`, as nft prints the elements of their sets. */
function clusterElements(
  version: 4 | 6,
  { clusterNetworks }: EgressTableOptions,
): readonly string[] {
  const family = version === 4 ? 1 : 2
  const peers = clusterNetworks.map((network) => ({ network, except: [] }))
  const elements = printPeers(peers, family)
  return elements === 'all' ? [version === 4 ? '0.0.0.0/0' : '::/0'] : elements
}

/** Where DNS queries go to, in nft's language. */
function targetOf(version: 4 | 6, { dnsAddresses, dnsPort }: EgressTableOptions): string {
  const address = dnsAddresses.find((one) => one.includes(':') === (version === 6))
  if (address === undefined) return `redirect to :${dnsPort}`
  return version === 4 ? `dnat ip to ${address}:${dnsPort}` : `dnat ip6 to [${address}]:${dnsPort}`
}

function allowSetBody(name: AllowSetName, { elementsMax }: EgressTableOptions): string {
  const address = name.endsWith('4') ? 'ipv4_addr' : 'ipv6_addr'
  const pair = `${address} . ${address}`
  const type = name.startsWith('any') ? pair : `${pair} . inet_proto . inet_service`
  const flags = name.startsWith('range') ? 'interval, timeout' : 'timeout'
  // The kernel also counts elements that have ended and that it has not removed yet.
  return `type ${type}; flags ${flags}; size ${2 * elementsMax};`
}
