import type { Directive } from '../plugin/directive.ts'
import { acl } from './acl/setup.ts'
import { any } from './any/setup.ts'
import { auto } from './auto/setup.ts'
import { bind } from './bind/setup.ts'
import { bufsize } from './bufsize/setup.ts'
import { chaos } from './chaos/setup.ts'
import { debug } from './debug/setup.ts'
import { errors } from './errors/setup.ts'
import { file } from './file/setup.ts'
import { geoip } from './geoip/setup.ts'
import { header } from './header/setup.ts'
import { health } from './health/setup.ts'
import { hosts } from './hosts/setup.ts'
import { kuadrant } from './kuadrant/setup.ts'
import { loadbalance } from './loadbalance/setup.ts'
import { local } from './local/setup.ts'
import { log } from './log/setup.ts'
import { metadata } from './metadata/setup.ts'
import { minimal } from './minimal/setup.ts'
import { multisocket } from './multisocket/setup.ts'
import { nsid } from './nsid/setup.ts'
import { prometheus } from './prometheus/setup.ts'
import { ready } from './ready/setup.ts'
import { reload } from './reload/setup.ts'
import { root } from './root/setup.ts'
import { secondary } from './secondary/setup.ts'
import { timeouts } from './timeouts/setup.ts'
import { transfer } from './transfer/setup.ts'
import { tsig } from './tsig/setup.ts'
import { view } from './view/setup.ts'
import { whoami } from './whoami/setup.ts'

/**
 * Every directive that a Corefile may hold, in the order of the chain: CoreDNS's plugin.cfg, with
 * `kuadrant` where Kuadrant's builds of CoreDNS have it. A plugin feels what those below it do.
 */
export const DIRECTIVE_NAMES: readonly string[] = [
  'root',
  'metadata',
  'geoip',
  'cancel',
  'proxyproto',
  'quic',
  'grpc_server',
  'https',
  'https3',
  'timeouts',
  'multisocket',
  'reload',
  'nsid',
  'bufsize',
  'bind',
  'debug',
  'trace',
  'ready',
  'health',
  'pprof',
  'shed',
  'prometheus',
  'errors',
  'log',
  'dnstap',
  'local',
  'dns64',
  'any',
  'chaos',
  'loadbalance',
  'tsig',
  'rewrite',
  'autopath',
  'acl',
  'cache',
  'header',
  'dnssec',
  'tls',
  'minimal',
  'template',
  'transfer',
  'hosts',
  'kuadrant',
  'route53',
  'azure',
  'clouddns',
  'k8s_external',
  'kubernetes',
  'file',
  'auto',
  'secondary',
  'etcd',
  'loop',
  'forward',
  'grpc',
  'erratic',
  'whoami',
  'on',
  'sign',
  'view',
  'nomad',
]

/** The directives that this version has; the others are refused by name. */
export const DIRECTIVES: readonly Directive[] = [
  root,
  metadata,
  geoip,
  timeouts,
  reload,
  nsid,
  multisocket,
  bufsize,
  bind,
  debug,
  ready,
  health,
  prometheus,
  errors,
  log,
  local,
  any,
  chaos,
  loadbalance,
  tsig,
  acl,
  header,
  minimal,
  transfer,
  hosts,
  kuadrant,
  file,
  auto,
  secondary,
  whoami,
  view,
]
