/** A chain of nftables: `ip raw` and `PREROUTING`. */
export interface ChainName {
  readonly table: string
  readonly chain: string
}

/** What the rules of a chain do to DNS queries. */
interface UntrackedDns {
  /** Servers as nft writes them; '' = all. Queries to them have no connection tracking. */
  readonly servers: readonly string[]
  /** Chains of the same table that rules lead to. */
  readonly jumps: readonly string[]
}

type Json = Readonly<Record<string, unknown>>

const DNS_PORT = 53
/** The priority of connection tracking (NF_IP_PRI_CONNTRACK). It skips packets that a chain before it exempts. */
const TRACKING = -200
const FAMILIES = new Set<unknown>(['ip', 'ip6', 'inet'])
const QUERY_PROTOCOLS = new Set<unknown>(['tcp', 'udp', 6, 17])
const TRANSPORTS = new Set<unknown>(['tcp', 'udp', 'th'])

/** Reads `nft -j list chains`: the chains that see packets of Pods before connection tracking. Throws an Error. */
export function chainsBeforeTracking(listing: string): readonly ChainName[] {
  return objectsOf(listing, 'chain').flatMap(({ family, table, name, hook, prio }) => {
    const isBefore = hook === 'prerouting' && typeof prio === 'number' && prio < TRACKING
    return isBefore && FAMILIES.has(family)
      ? [{ table: `${family} ${table}`, chain: String(name) }]
      : []
  })
}

/** Reads `nft -j list chain`. Throws an Error. */
export function untrackedDnsOf(listing: string): UntrackedDns {
  const servers = new Set<string>()
  const jumps = new Set<string>()
  for (const { expr } of objectsOf(listing, 'rule')) {
    const parts = Array.isArray(expr) ? expr.map(objectOf) : []
    for (const { jump, goto } of parts) {
      const { target } = objectOf(jump ?? goto)
      if (typeof target === 'string') jumps.add(target)
    }
    if (parts.some(untracks) && parts.every(admitsQueries) && hasPortOrAll(parts)) {
      servers.add(serverOf(parts))
    }
  }
  return { servers: [...servers], jumps: [...jumps] }
}

/** nft prints a rule of iptables (`-j NOTRACK`, `-j CT`) by the name of the target only. */
function untracks(part: Json): boolean {
  const { type, name } = objectOf(part.xt)
  return 'notrack' in part || (type === 'target' && name === 'CT')
}

/** False if no DNS query of a Pod matches. */
function admitsQueries({ match }: Json): boolean {
  if (match === undefined) return true
  const { op, left, right } = objectOf(match)
  const isWanted = (isFound: boolean): boolean => isFound === (op !== '!=')
  const { field, protocol } = objectOf(objectOf(left).payload)
  if (field === 'dport') return TRANSPORTS.has(protocol) && isWanted(hasPort(right))
  const { key } = objectOf(objectOf(left).meta)
  if (key === 'l4proto') return isWanted(membersOf(right).some((one) => QUERY_PROTOCOLS.has(one)))
  // Packets of Pods do not come from the loopback interface.
  if (key === 'iif' || key === 'iifname') return isWanted(right !== 'lo')
  return true
}

/** True for rules about the port of DNS, and for those without any condition but the protocol. */
function hasPortOrAll(parts: readonly Json[]): boolean {
  const isPort = ({ match }: Json): boolean => {
    return objectOf(objectOf(objectOf(match).left).payload).field === 'dport'
  }
  if (parts.some(isPort)) return true
  return parts.every(({ match, xt }) => {
    if (match !== undefined) {
      return objectOf(objectOf(objectOf(match).left).meta).key === 'l4proto'
    }
    const { type, name } = objectOf(xt)
    return type !== 'match' || name === 'comment'
  })
}

function serverOf(parts: readonly Json[]): string {
  for (const { match } of parts) {
    const { op, left, right } = objectOf(match)
    if (objectOf(objectOf(left).payload).field !== 'daddr') continue
    const text = membersOf(right).map(printAddress).join(', ')
    return op === '!=' ? `all but ${text}` : text
  }
  return ''
}

function hasPort(right: unknown): boolean {
  return membersOf(right).some((one) => {
    const { range } = objectOf(one)
    if (!Array.isArray(range)) return one === DNS_PORT
    return Number(range[0]) <= DNS_PORT && DNS_PORT <= Number(range[1])
  })
}

function membersOf(right: unknown): readonly unknown[] {
  const { set } = objectOf(right)
  return Array.isArray(set) ? set : [right]
}

function printAddress(address: unknown): string {
  const { prefix, range } = objectOf(address)
  const { addr, len } = objectOf(prefix)
  if (addr !== undefined) return `${addr}/${len}`
  return Array.isArray(range) ? range.join('-') : String(address)
}

function objectsOf(listing: string, kind: string): readonly Json[] {
  const { nftables } = objectOf(JSON.parse(listing))
  if (!Array.isArray(nftables)) throw new Error('the output is not a listing of nft')
  return nftables.flatMap((one) => {
    const object = objectOf(one)[kind]
    return object === undefined ? [] : [objectOf(object)]
  })
}

/** Returns `value`, or an empty object if it is no object. */
function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null ? (value as Json) : {}
}
