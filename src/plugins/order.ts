import { InputError } from '../base/errors.ts'
import type { Directive, LoadDirectives } from '../plugin/directive.ts'

/**
 * Every directive that a Corefile may contain, in the order of the chain: CoreDNS's plugin.cfg, with `kuadrant` in the
 * same place as in Kuadrant's builds of CoreDNS, `ocp_dnsnameresolver` as in OpenShift's, `admin` above all that
 * publish zones, `k8s_cache` beside `cache`, `error-report` beside `nsid`, `xdp` beside `multisocket`, and `egress`
 * above all that change or cache answers. A plugin sees the effects of those below it.
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
  'xdp',
  'reload',
  'plugin',
  'nsid',
  'error-report',
  'bufsize',
  'bind',
  'debug',
  'trace',
  'ready',
  'health',
  'pprof',
  'shed',
  'prometheus',
  'admin',
  'rrl',
  'errors',
  'log',
  'dnstap',
  'egress',
  'local',
  'dns64',
  'siit',
  'any',
  'chaos',
  'loadbalance',
  'tsig',
  'rewrite',
  'autopath',
  'acl',
  'egressfirewall',
  'ocp_dnsnameresolver',
  'cache',
  'k8s_cache',
  'header',
  'dnssec',
  'tls',
  'minimal',
  'template',
  'transfer',
  'dynupdate',
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

/**
 * The directives of this version; each is loaded when a Corefile names it. All others are rejected
 * by name.
 */
const LOADERS: Readonly<Record<string, () => Promise<Directive>>> = {
  root: async () => (await import('./root/setup.ts')).root,
  metadata: async () => (await import('./metadata/setup.ts')).metadata,
  cache: async () => (await import('./cache/setup.ts')).cache,
  k8s_cache: async () => (await import('./k8s_cache/setup.ts')).k8sCache,
  geoip: async () => (await import('./geoip/setup.ts')).geoip,
  cancel: async () => (await import('./cancel/setup.ts')).cancel,
  proxyproto: async () => (await import('./proxyproto/setup.ts')).proxyproto,
  timeouts: async () => (await import('./timeouts/setup.ts')).timeouts,
  multisocket: async () => (await import('./multisocket/setup.ts')).multisocket,
  xdp: async () => (await import('./xdp/setup.ts')).xdp,
  reload: async () => (await import('./reload/setup.ts')).reload,
  plugin: async () => (await import('./plugin/setup.ts')).declaringBeside(DIRECTIVE_NAMES),
  nsid: async () => (await import('./nsid/setup.ts')).nsid,
  'error-report': async () => (await import('./error-report/setup.ts')).errorReport,
  bufsize: async () => (await import('./bufsize/setup.ts')).bufsize,
  bind: async () => (await import('./bind/setup.ts')).bind,
  debug: async () => (await import('./debug/setup.ts')).debug,
  trace: async () => (await import('./trace/setup.ts')).trace,
  ready: async () => (await import('./ready/setup.ts')).ready,
  health: async () => (await import('./health/setup.ts')).health,
  pprof: async () => (await import('./pprof/setup.ts')).pprof,
  shed: async () => (await import('./shed/setup.ts')).shed,
  prometheus: async () => (await import('./prometheus/setup.ts')).prometheus,
  admin: async () => (await import('./admin/setup.ts')).admin,
  rrl: async () => (await import('./rrl/setup.ts')).rrl,
  errors: async () => (await import('./errors/setup.ts')).errors,
  log: async () => (await import('./log/setup.ts')).log,
  dnstap: async () => (await import('./dnstap/setup.ts')).dnstap,
  egress: async () => (await import('./egress/setup.ts')).egress,
  local: async () => (await import('./local/setup.ts')).local,
  dns64: async () => (await import('./dns64/setup.ts')).dns64,
  siit: async () => (await import('./siit/setup.ts')).siit,
  any: async () => (await import('./any/setup.ts')).any,
  chaos: async () => (await import('./chaos/setup.ts')).chaos,
  loadbalance: async () => (await import('./loadbalance/setup.ts')).loadbalance,
  tsig: async () => (await import('./tsig/setup.ts')).tsig,
  rewrite: async () => (await import('./rewrite/setup.ts')).rewrite,
  autopath: async () => (await import('./autopath/setup.ts')).autopath,
  acl: async () => (await import('./acl/setup.ts')).acl,
  egressfirewall: async () => (await import('./egressfirewall/setup.ts')).egressfirewall,
  ocp_dnsnameresolver: async () => (await import('./egressfirewall/setup.ts')).ocpDnsNameResolver,
  dnssec: async () => (await import('./dnssec/setup.ts')).dnssec,
  header: async () => (await import('./header/setup.ts')).header,
  minimal: async () => (await import('./minimal/setup.ts')).minimal,
  template: async () => (await import('./template/setup.ts')).template,
  transfer: async () => (await import('./transfer/setup.ts')).transfer,
  hosts: async () => (await import('./hosts/setup.ts')).hosts,
  kuadrant: async () => (await import('./kuadrant/setup.ts')).kuadrant,
  k8s_external: async () => (await import('./k8s_external/setup.ts')).k8sExternal,
  kubernetes: async () => (await import('./kubernetes/setup.ts')).kubernetes,
  file: async () => (await import('./file/setup.ts')).file,
  auto: async () => (await import('./auto/setup.ts')).auto,
  secondary: async () => (await import('./secondary/setup.ts')).secondary,
  loop: async () => (await import('./loop/setup.ts')).loop,
  forward: async () => (await import('./forward/setup.ts')).forward,
  erratic: async () => (await import('./erratic/setup.ts')).erratic,
  whoami: async () => (await import('./whoami/setup.ts')).whoami,
  on: async () => (await import('./on/setup.ts')).on,
  sign: async () => (await import('./sign/setup.ts')).sign,
  view: async () => (await import('./view/setup.ts')).view,
}

export const SUPPORTED_NAMES: readonly string[] = Object.keys(LOADERS)

/** Loads directives of this version and of npm packages. */
export const loadDirectives: LoadDirectives = async (blocks, corefile) => {
  // Commands that only list the directives read no Corefile.
  const { namedDirectives } = await import('../corefile/parser.ts')
  const names = namedDirectives(blocks)
  const loaded = SUPPORTED_NAMES.filter((name) => names.has(name)).map(loadDirective)
  if (names.has('plugin')) {
    const { loadDeclared } = await import('./plugin/load.ts')
    // The last directive of a name counts. So a package cannot replace a directive, and `plugin` reports the conflict.
    return [...(await loadDeclared(blocks, corefile)), ...(await Promise.all(loaded))]
  }
  return Promise.all(loaded)
}

/**
 * Throws InputError if a file of the program is missing: an update replaced it, or the installation
 * is incomplete.
 */
async function loadDirective(name: string): Promise<Directive> {
  try {
    return await LOADERS[name]!()
  } catch (error) {
    const isMissing =
      error instanceof Error && 'code' in error && error.code === 'ERR_MODULE_NOT_FOUND'
    if (!isMissing) throw error
    const message = `directive ${name} cannot be loaded: ${error.message}; install Sextant again and restart it`
    throw new InputError(undefined, message, error)
  }
}
