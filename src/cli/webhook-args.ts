import { asciiName } from '../webhook/external-endpoint.ts'
import { type CommandArgs, defaultsOf, flagsOf, refuseWords, scanFlags } from './args.ts'
import { NAMESPACE } from './egress-args.ts'
import { BadValue, type Get, wordsOf } from './flag-values.ts'

/** The arguments of `sextant webhook`. */
export interface WebhookArgs {
  /** `host:port` of the protocol. */
  readonly address: string
  /** `host:port` of /metrics and /healthz; '' = none. */
  readonly metricsAddress: string
  /** In lower case without a final dot; at least one. */
  readonly zones: readonly string[]
  readonly excluded: readonly string[]
  readonly owner: string
  /** '' = the cluster in which the webhook runs. */
  readonly kubeconfig: string
  /** '' = the current context. */
  readonly context: string
  readonly namespace: string
  /** Directory of manifests; '' = records are DNSRecords of the cluster. */
  readonly manifests: string
}

export const WEBHOOK: CommandArgs = {
  usage: 'webhook --zones LIST [FLAG]...',
  flags: flagsOf(`
    --zones LIST | | comma-separated list of zones: refuses hosts outside of them, and labels each record with the longest zone that contains it
    --exclude LIST | | comma-separated list of names: refuses them and the hosts below
    --owner NAME | default | changes only DNSRecords that have this value in the label webhook.sextant.io/owner. Give each external-dns its own
    --namespace NAME | ($POD_NAMESPACE, else "default") | namespace of the DNSRecords
    --kubeconfig FILE | (the cluster that the webhook runs in) | kubeconfig file
    --context NAME | (the current context) | context of the kubeconfig
    --manifests DIR | | write the DNSRecords as files of this directory, not to a cluster
    --bind-address ADDRESS | localhost:8888 | address of the protocol: clients need no password, so keep it on loopback
    --metrics-bind-address ADDRESS | :8080 | address of /metrics and /healthz; 0 disables them
  `),
}

/** Value of a label. */
const OWNER = /^[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/
const ZONE =
  /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*$/
/** The zone of a record is the value of a label. */
const ZONE_CHARACTERS_MAX = 63

/** Reads the arguments. Returns a string if they are invalid: the reason. */
export function scanWebhookArgs(
  argv: readonly string[],
  env: NodeJS.ProcessEnv,
): WebhookArgs | string {
  const flags = scanFlags(argv, WEBHOOK.flags)
  if (typeof flags === 'string') return flags
  const extra = refuseWords(flags.rest)
  if (extra !== undefined) return extra
  const values = new Map([...defaultsOf(WEBHOOK.flags), ...flags.given])
  try {
    return collect((name) => values.get(name) ?? '', env)
  } catch (error) {
    if (!(error instanceof BadValue)) throw error
    return error.message
  }
}

function collect(get: Get, env: NodeJS.ProcessEnv): WebhookArgs {
  const zones = names('zones', get)
  if (zones.length === 0) throw new BadValue('zones', '', 'a comma list of at least one zone')
  const owner = get('owner')
  if (!OWNER.test(owner)) {
    throw new BadValue('owner', owner, '1 to 63 of letters, digits, ".", "_" and "-"')
  }
  const namespace = get('namespace') || env.POD_NAMESPACE || 'default'
  if (!NAMESPACE.test(namespace)) {
    throw new BadValue('namespace', namespace, 'the name of a namespace')
  }
  const manifests = get('manifests')
  if (manifests !== '' && get('kubeconfig') !== '') {
    throw new BadValue('manifests', manifests, 'without --kubeconfig: records have one place')
  }
  return {
    address: address('bind-address', get),
    metricsAddress: get('metrics-bind-address') === '0' ? '' : address('metrics-bind-address', get),
    zones,
    excluded: names('exclude', get),
    owner,
    kubeconfig: get('kubeconfig'),
    context: get('context'),
    namespace,
    manifests,
  }
}

function names(flag: string, get: Get): readonly string[] {
  return wordsOf(get(flag)).map((word) => {
    const name = asciiName(word)
    if (ZONE.test(name) && name.length <= ZONE_CHARACTERS_MAX) return name
    const want = `a comma list of domain names of up to ${ZONE_CHARACTERS_MAX} characters`
    throw new BadValue(flag, word, want)
  })
}

function address(flag: string, get: Get): string {
  const text = get(flag)
  const port = /^(?:[^:]*|\[[^\]]*\]):(\d{1,5})$/.exec(text)?.[1]
  if (port === undefined || Number(port) > 65_535) {
    throw new BadValue(flag, text, 'HOST:PORT or :PORT')
  }
  return text
}
