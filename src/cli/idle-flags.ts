import { keyOf } from './args.ts'
import type { CONTROLLERS } from './egress-args.ts'
import { boolean, type Get } from './flag-values.ts'
import { FQDN_FLAGS } from './fqdn-flags.ts'
import { OVN_FLAGS } from './ovn-args.ts'

/** Why flags of the operator have no effect, whatever their values are. */
interface IdleRule {
  /** Without dashes, separated by spaces. */
  readonly flags: string
  /** The flag that decides, and why it does. */
  readonly cause: string
  readonly reason: string
  /** Whether the flags have no effect. Throws BadValue. */
  readonly isIdle: (get: Get, has: (controller: string) => boolean) => boolean
}

const RULES: readonly IdleRule[] = [
  {
    flags: 'quorum hold-down',
    cause: 'enable-probes',
    reason: 'is off',
    isIdle: (get) => !boolean('enable-probes', get),
  },
  {
    flags: 'quorum hold-down',
    cause: 'probe-peers',
    reason: 'is off',
    isIdle: (get) => !boolean('probe-peers', get),
  },
  {
    flags: 'leader-elect-namespace',
    cause: 'leader-elect',
    reason: 'is off',
    isIdle: (get) => !boolean('leader-elect', get),
  },
  {
    flags: 'context',
    cause: 'kubeconfig',
    reason: 'is not set',
    isIdle: (get) => get('kubeconfig') === '',
  },
  {
    flags: 'notify-allow',
    cause: 'notify-bind-address',
    reason: 'is 0',
    isIdle: (get) => get('notify-bind-address') === '0',
  },
  {
    flags: 'ovn-nb-ca ovn-nb-cert ovn-nb-key ovn-nb-server-name',
    cause: 'ovn-nb',
    reason: 'has no address ssl:HOST:PORT',
    isIdle: (get) => !/\bssl:/.test(get('ovn-nb')),
  },
  {
    flags: 'dns-config-file',
    cause: 'dns-environment',
    reason: 'is not resolv.conf',
    isIdle: (get) => get('dns-environment') !== 'resolv.conf',
  },
  {
    flags: 'dns-service-name',
    cause: 'dns-environment',
    reason: 'is resolv.conf',
    isIdle: (get, has) => get('dns-environment') === 'resolv.conf' && !has('dnsnameresolver'),
  },
]

type Controller = (typeof CONTROLLERS)[number]

/** The controllers that read each flag; the other flags concern the whole operator. */
const READERS: ReadonlyMap<string, readonly Controller[]> = new Map([
  ...readBy(
    ['dnsrecord'],
    'sources site silent-site probe-peers quorum hold-down min-requeue-time max-requeue-time enable-probes insecure-health-checks nameserver-allow probe-allow delegation-role share-hosts cluster-secret-namespace cluster-secret-label cluster-leave-time remote-removal-timeout group notify-allow trace-otlp',
  ),
  ...readBy(['ovn'], keysOf(OVN_FLAGS)),
  ...readBy(['fqdnnetworkpolicy'], keysOf(FQDN_FLAGS.filter(({ name }) => !/^--zap/.test(name)))),
  ...readBy(['dnsnameresolver', 'egressfirewall', 'ovn'], 'egress-namespace egress-kind'),
  ...readBy(['ovn', 'fqdnnetworkpolicy'], 'cluster-cidr egress-allow'),
  ...readBy(['dnsnameresolver', 'fqdnnetworkpolicy'], 'dns-service-name'),
])

function keysOf(flags: readonly { readonly name: string }[]): string {
  return flags.map(({ name }) => keyOf(name)).join(' ')
}

function readBy(controllers: readonly Controller[], flags: string) {
  return flags.split(' ').map((flag) => [flag, controllers] as const)
}

/** The values of the operator's flags, by key. */
interface FlagSources {
  readonly get: Get
  readonly defaults: ReadonlyMap<string, string>
  /** From the command line. */
  readonly given: ReadonlyMap<string, string>
  readonly controllers: ReadonlySet<string>
}

/**
 * Returns which flag has no effect with the others, and what to change; '' = none. A value from the environment may
 * be meant for several operators, so it may be one of a controller that does not run here. Throws BadValue.
 */
export function describeIdle({ get, defaults, given, controllers }: FlagSources): string {
  const has = (controller: string): boolean => controllers.has(controller)
  for (const name of given.keys()) {
    const readers = READERS.get(name) ?? []
    if (readers.length === 0 || readers.some(has) || get(name) === defaults.get(name)) continue
    return idle(name, 'controllers', `does not have ${readers.join(' or ')}`)
  }
  for (const { flags, cause, reason, isIdle } of RULES) {
    const name = flags.split(' ').find((name) => get(name) !== defaults.get(name))
    if (name !== undefined && isIdle(get, has)) return idle(name, cause, reason)
  }
  return ''
}

function idle(name: string, cause: string, reason: string): string {
  return `--${name} has no effect, because --${cause} ${reason}: remove --${name}, or change --${cause}`
}
