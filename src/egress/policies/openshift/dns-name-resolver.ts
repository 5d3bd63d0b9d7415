import { printTime } from '../../../base/rfc3339.ts'
import type { Rcode } from '../../../dns/iana/rcodes.ts'
import { type ApiObject, isObject, type JsonValue, textOf } from '../../../kube/api.ts'
import { scanTime } from './lookup-time.ts'
import type { NameApi } from './name-api.ts'
import { DNS_NAME_RESOLVERS } from './name-kinds.ts'
import {
  type Degraded,
  type ResolvedAddress,
  type ResolvedName,
  updateResolvedNames,
} from './resolved-names.ts'

/** The definition's rule for names. */
const NAME = /^(\*\.)?([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\.){2,}$/
const NAME_LENGTH_MAX = 254
const DEGRADED = 'Degraded'

/** Octets in the API's storage, with the record of who wrote which field. */
const ENTRY_OCTETS = 600
const ADDRESS_OCTETS = 240

/** Texts of rcodes, from the IANA registry "DNS RCODEs". */
const MESSAGES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    NOERROR: 'No Error',
    FORMERR: 'Format Error',
    SERVFAIL: 'Server Failure',
    NXDOMAIN: 'Non-Existent Domain',
    NOTIMP: 'Not Implemented',
    REFUSED: 'Query Refused',
    YXDOMAIN: 'Name Exists when it should not',
    YXRRSET: 'RR Set Exists when it should not',
    NXRRSET: 'RR Set that should exist does not',
    NOTAUTH: 'Server Not Authoritative for zone',
    NOTZONE: 'Name not contained in zone',
    BADVERS: 'Bad OPT Version',
    BADKEY: 'Key not recognized',
    BADTIME: 'Signature out of time window',
    BADMODE: 'Bad TKEY Mode',
    BADNAME: 'Duplicate key name',
    BADALG: 'Algorithm not supported',
    BADTRUNC: 'Bad Truncation',
    BADCOOKIE: 'Bad/missing Server Cookie',
  } satisfies Record<keyof typeof Rcode, string>),
)

/** DNSNameResolver, `network.openshift.io/v1alpha1`: each address has its own TTL. */
export const DNS_NAME_RESOLVER: NameApi<ResolvedName> = {
  resource: DNS_NAME_RESOLVERS,
  accepts: (dnsName) => dnsName.length <= NAME_LENGTH_MAX && NAME.test(dnsName),
  scan: (value) => (Array.isArray(value) ? value.flatMap(scanName) : []),
  print: (names) => names.map(printName),
  update: updateResolvedNames,
  forEachAddress: ({ addresses }, visit) => {
    for (const address of addresses) visit(address.ip, endMsOf(address))
  },
  octetsOf: ({ dnsName, addresses }) => {
    return ENTRY_OCTETS + 2 * dnsName.length + ADDRESS_OCTETS * addresses.length
  },
  withoutExpired: (names, endMs) => {
    return names.flatMap((name) => {
      const addresses = name.addresses.filter((address) => endMsOf(address) >= endMs)
      return addresses.length === 0 ? [] : [{ ...name, addresses }]
    })
  },
}

function endMsOf({ lookupMs, ttlSeconds }: ResolvedAddress): number {
  return lookupMs + ttlSeconds * 1000
}

function scanName(value: JsonValue): ResolvedName[] {
  const dnsName = textOf(value, 'dnsName')
  if (!isObject(value) || dnsName === '') return []
  const { resolvedAddresses, resolutionFailures } = value
  const conditions = Array.isArray(value.conditions) ? value.conditions.filter(isObject) : []
  const own = conditions.find((condition) => condition.type === DEGRADED)
  const others = conditions.filter((condition) => condition.type !== DEGRADED)
  const name = {
    dnsName,
    failures: typeof resolutionFailures === 'number' ? resolutionFailures : 0,
    addresses: Array.isArray(resolvedAddresses) ? resolvedAddresses.flatMap(scanAddress) : [],
    degraded: own === undefined ? undefined : scanDegraded(own),
  }
  return [others.length === 0 ? name : { ...name, otherConditions: others }]
}

function scanAddress(value: JsonValue): ResolvedAddress[] {
  const ip = textOf(value, 'ip')
  if (!isObject(value) || ip === '' || typeof value.ttlSeconds !== 'number') return []
  const lookupMs = scanTime(textOf(value, 'lastLookupTime'))
  return [{ ip, ttlSeconds: value.ttlSeconds, lookupMs }]
}

function scanDegraded(condition: ApiObject): Degraded {
  return {
    isDegraded: condition.status === 'True',
    reason: textOf(condition, 'reason'),
    sinceMs: scanTime(textOf(condition, 'lastTransitionTime')),
  }
}

function printName({
  dnsName,
  failures,
  addresses,
  degraded,
  otherConditions,
}: ResolvedName): JsonValue {
  const resolvedAddresses = addresses.map(({ ip, ttlSeconds, lookupMs }) => {
    return { ip, ttlSeconds, lastLookupTime: printTime(lookupMs) }
  })
  const counted = failures === 0 ? {} : { resolutionFailures: failures }
  const own = degraded === undefined ? [] : [printDegraded(degraded)]
  // They came from the API as JSON.
  const others = (otherConditions ?? []) as readonly ApiObject[]
  return { dnsName, resolvedAddresses, ...counted, conditions: [...own, ...others] }
}

function printDegraded({ isDegraded, reason, sinceMs }: Degraded): JsonValue {
  return {
    type: DEGRADED,
    status: isDegraded ? 'True' : 'False',
    reason,
    message: MESSAGES.get(reason) ?? reason,
    lastTransitionTime: printTime(sinceMs),
  }
}
