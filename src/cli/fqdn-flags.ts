import type { DnsSettings, FqdnSettings } from '../operator/egress/fqdnnetworkpolicy/settings.ts'
import { flagsOf } from './args.ts'
import { BadValue, boolean, duration, type Get, networks } from './flag-values.ts'

const DNS_NAMESPACE = 'kube-system'
const SERVICE = /^(?:([a-z0-9][-a-z0-9]{0,62})\/)?([a-z][-a-z0-9]{0,62})$/
const NO_EFFECT =
  'no effect; compatible with the FQDNNetworkPolicy controller of delta10; invalid values are rejected'

/** Flags of the controller fqdnnetworkpolicy, with the names that delta10's and nais's controllers give them. */
export const FQDN_FLAGS = flagsOf(`
  --dns-environment KIND | kubernetes | where names are resolved: kubernetes = all endpoints of a Service, resolv.conf = the servers of a file
  --dns-service-name NAME | kube-dns | Service of the DNS servers, NAME in kube-system or NAMESPACE/NAME
  --dns-config-file FILE | /etc/resolv.conf | file of the DNS servers, with --dns-environment=resolv.conf
  --dns-tcp | false | query over TCP instead of UDP
  --ip-expiration-period DURATION | 60m | how long an address is allowed after it was last in an answer
  --next-sync-period SECONDS | 3600 | longest time in seconds between two lookups of a name
  --minimum-sync-period SECONDS | 1 | shortest time in seconds between two lookups of a name
  --skip-aaaa | false | do not look up IPv6 addresses
  --max-concurrent-reconciles N | 10 | FQDNNetworkPolicies that are reconciled at once
  --zap-log-level LEVEL | | as --log-level: debug, info, error, or a number above 0 for debug
  --zap-devel | false | as --log-level=debug
  --zap-encoder FORMAT | | ${NO_EFFECT}
  --zap-stacktrace-level LEVEL | | ${NO_EFFECT}
  --zap-time-encoding FORMAT | | ${NO_EFFECT}
`)

/** Reads the values of FQDN_FLAGS. Throws BadValue. */
export function readFqdnSettings(get: Get): FqdnSettings {
  const nextSyncMs = seconds('next-sync-period', get)
  const minimumSyncMs = seconds('minimum-sync-period', get)
  if (minimumSyncMs > nextSyncMs) {
    throw new BadValue(
      'minimum-sync-period',
      get('minimum-sync-period'),
      'at most --next-sync-period',
    )
  }
  return {
    dns: dnsSettings(get),
    ipExpirationMs: duration('ip-expiration-period', get),
    nextSyncMs,
    minimumSyncMs,
    skipsAaaa: boolean('skip-aaaa', get),
    maxConcurrentReconciles: count('max-concurrent-reconciles', get, 1000),
    clusterNetworks: networks('cluster-cidr', get),
    allowedNetworks: networks('egress-allow', get),
  }
}

/** The values of zap's flags that have no effect here: a wrong one is refused as by zap. */
const ZAP_CHOICES: Readonly<Record<string, readonly string[]>> = {
  'zap-encoder': ['json', 'console'],
  'zap-stacktrace-level': ['debug', 'info', 'error', 'panic'],
  'zap-time-encoding': ['epoch', 'millis', 'nano', 'nanos', 'iso8601', 'rfc3339', 'rfc3339nano'],
}

/** The level of `--log-level` that zap's flags stand for; '' = they are not given. Throws BadValue. */
export function zapLevel(get: Get): string {
  for (const [name, choices] of Object.entries(ZAP_CHOICES)) {
    const value = get(name)
    const isKnown = value === '' || choices.includes(value.toLowerCase())
    if (!isKnown) throw new BadValue(name, value, `one of ${choices.join(', ')}`)
  }
  const level = get('zap-log-level')
  if (level === '') return boolean('zap-devel', get) ? 'debug' : ''
  if (/^[1-9]\d{0,8}$/.test(level)) return 'debug'
  if (['debug', 'info', 'error'].includes(level)) return level
  throw new BadValue('zap-log-level', level, 'debug, info, error or a number above 0')
}

function dnsSettings(get: Get): DnsSettings {
  const overTcp = boolean('dns-tcp', get)
  const environment = get('dns-environment')
  if (environment === 'resolv.conf') {
    return { overTcp, source: { kind: 'file', path: get('dns-config-file') } }
  }
  if (environment !== 'kubernetes') {
    throw new BadValue('dns-environment', environment, 'kubernetes or resolv.conf')
  }
  return { overTcp, source: { kind: 'service', ...readDnsService(get) } }
}

/** Reads `--dns-service-name`. Throws BadValue. */
export function readDnsService(get: Get): { readonly namespace: string; readonly name: string } {
  const service = get('dns-service-name')
  const [, namespace = DNS_NAMESPACE, name] = SERVICE.exec(service) ?? []
  if (name === undefined) throw new BadValue('dns-service-name', service, 'NAME or NAMESPACE/NAME')
  return { namespace, name }
}

/** Milliseconds of a flag in seconds. */
function seconds(name: string, get: Get): number {
  return count(name, get, 7 * 24 * 3600) * 1000
}

function count(name: string, get: Get, most: number): number {
  const text = get(name)
  const number = /^\d{1,9}$/.test(text) ? Number(text) : 0
  if (number >= 1 && number <= most) return number
  throw new BadValue(name, text, `a number from 1 to ${most}`)
}
