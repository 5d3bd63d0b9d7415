import type { DnsSettings, FqdnSettings } from '../operator/egress/fqdnnetworkpolicy/settings.ts'
import { flagsOf } from './args.ts'
import { BadValue, boolean, duration, type Get, networks } from './flag-values.ts'
import { ZAP_CHOICES, type ZapOptions } from './zap-lines.ts'

const DNS_NAMESPACE = 'kube-system'
const SERVICE = /^(?:([a-z0-9][-a-z0-9]{0,62})\/)?([a-z][-a-z0-9]{0,62})$/

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
  --zap-log-level LEVEL | | as --log-level: debug, info, error, panic, or a number above 0 for debug
  --zap-devel | false | as --log-level=debug
  --zap-encoder FORMAT | | print log lines as zap does: json or console
  --zap-stacktrace-level LEVEL | | add the calls that led to a line, from this level on: info, error or panic; lines are printed as by zap
  --zap-time-encoding FORMAT | (rfc3339) | time of a line: epoch, millis, nano, iso8601, rfc3339 or rfc3339nano; lines are printed as by zap
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

/** The form of lines that zap's flags ask for. Throws BadValue. */
export function readZap(get: Get): ZapOptions {
  const choice = (name: keyof typeof ZAP_CHOICES): string => {
    const value = get(name).toLowerCase()
    const choices: readonly string[] = ZAP_CHOICES[name]
    if (value === '' || choices.includes(value)) return value
    throw new BadValue(name, get(name), `one of ${choices.join(', ')}`)
  }
  return {
    encoder: choice('zap-encoder'),
    stacktraceLevel: choice('zap-stacktrace-level'),
    timeEncoding: choice('zap-time-encoding'),
  }
}

/** The level of `--log-level` that zap's flags stand for; '' = they are not given. Throws BadValue. */
export function zapLevel(get: Get): string {
  const level = get('zap-log-level')
  if (level === '') return boolean('zap-devel', get) ? 'debug' : ''
  if (/^[1-9]\d{0,8}$/.test(level)) return 'debug'
  if (['debug', 'info', 'error', 'panic'].includes(level)) return level
  throw new BadValue('zap-log-level', level, 'debug, info, error, panic or a number above 0')
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
