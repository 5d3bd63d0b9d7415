import { type Cidr, printAddress } from '../../dns/text/address.ts'
import { ALLOW_SETS, type AllowSetName } from './allowed-element.ts'

export interface EgressTableOptions {
  /** Name of the table, of the family `inet`. */
  readonly table: string
  /** Elements that each set of addresses can have. */
  readonly elementsMax: number
  /** Networks of Pods, Services and nodes: connections to them are left to others. */
  readonly clusterNetworks: readonly Cidr[]
  /** The port of this host where DNS queries of clients go to, whatever server they ask. */
  readonly dnsPort: number
}

/** DNS over TLS and QUIC: this server does not see the answers, so clients must not use it. */
const ENCRYPTED_DNS_PORT = 853

/**
 * The statements that create the table, or bring an existing one to this form. Elements of sets stay.
 *
 *     forward ─▶ is the client selected? ─▶ established ─▶ cluster ─▶ allow sets ─▶ drop
 *     dnsqueries ─▶ is the client selected? ─▶ DNS is redirected to this host
 *
 * A client that no policy selects is not touched. If this process ends, the table stays: open
 * connections continue, and no new address is allowed.
 */
export function tableStatements(options: EgressTableOptions): readonly string[] {
  const { table, clusterNetworks, dnsPort } = options
  const set = (name: string, body: string): string => `add set inet ${table} ${name} { ${body} }`
  const statements = [`add table inet ${table}`]
  for (const version of [4, 6] as const) {
    const address = `ipv${version}_addr`
    statements.push(
      set(`clients${version}`, `type ${address}; flags interval; auto-merge;`),
      set(`cluster${version}`, `type ${address}; flags interval; auto-merge;`),
      `flush set inet ${table} cluster${version}`,
    )
    const networks = clusterNetworks.filter(({ family }) => family === (version === 4 ? 1 : 2))
    if (networks.length > 0) {
      const list = networks.map(printCidr).join(', ')
      statements.push(`add element inet ${table} cluster${version} { ${list} }`)
    }
  }
  for (const name of ALLOW_SETS) statements.push(set(name, allowSetBody(name, options)))
  const chains = {
    forward: 'type filter hook forward priority -10; policy accept;',
    dnsqueries: 'type nat hook prerouting priority -110; policy accept;',
    client: '',
  }
  for (const [name, body] of Object.entries(chains)) {
    statements.push(
      `add chain inet ${table} ${name}${body === '' ? '' : ` { ${body} }`}`,
      `flush chain inet ${table} ${name}`,
    )
  }
  const rule = (chain: string, text: string): number =>
    statements.push(`add rule inet ${table} ${chain} ${text}`)
  for (const [ip, version] of [
    ['ip', 4],
    ['ip6', 6],
  ] as const) {
    const selected = `${ip} saddr @clients${version}`
    rule('forward', `${selected} jump client`)
    rule('dnsqueries', `${selected} meta l4proto { tcp, udp } th dport 53 redirect to :${dnsPort}`)
  }
  rule('client', `meta l4proto { tcp, udp } th dport ${ENCRYPTED_DNS_PORT} counter drop`)
  rule('client', 'ct state established,related accept')
  for (const [ip, version] of [
    ['ip', 4],
    ['ip6', 6],
  ] as const) {
    const pair = `${ip} saddr . ${ip} daddr`
    rule('client', `${ip} daddr @cluster${version} accept`)
    rule('client', `${pair} @any${version} accept`)
    for (const kind of ['port', 'range'] as const) {
      rule('client', `${pair} . meta l4proto . th dport @${kind}${version} accept`)
    }
  }
  // Without neighbour discovery an IPv6 client has no router.
  rule(
    'client',
    'icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit } accept',
  )
  rule('client', 'counter drop')
  return statements
}

function allowSetBody(name: AllowSetName, { elementsMax }: EgressTableOptions): string {
  const address = name.endsWith('4') ? 'ipv4_addr' : 'ipv6_addr'
  const pair = `${address} . ${address}`
  const type = name.startsWith('any') ? pair : `${pair} . inet_proto . inet_service`
  const flags = name.startsWith('range') ? 'interval, timeout' : 'timeout'
  // The kernel also counts elements that have ended and that it has not removed yet.
  return `type ${type}; flags ${flags}; size ${2 * elementsMax};`
}

function printCidr({ bytes, family, bits }: Cidr): string {
  return `${printAddress(bytes, family)}/${bits}`
}
