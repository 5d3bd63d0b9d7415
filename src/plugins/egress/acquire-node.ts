import { InputError } from '../../base/errors.ts'
import { Random } from '../../base/random.ts'
import type { ResourceLease } from '../../base/resource-registry.ts'
import { AGENT_LIMITS_DEFAULT } from '../../egress/agent/agent-limits.ts'
import type { AnswerNames } from '../../egress/agent/api/socket-server.ts'
import { BypassWatch } from '../../egress/agent/bypass/bypass-watch.ts'
import { Conntrack } from '../../egress/agent/conntrack/conntrack.ts'
import { EgressAgent } from '../../egress/agent/egress-agent.ts'
import { KubernetesPolicies } from '../../egress/agent/sources/kubernetes-policies.ts'
import { PolicyFiles } from '../../egress/agent/sources/policy-files.ts'
import { AddressRules } from '../../egress/learned/address-rules.ts'
import type { Enforcer } from '../../egress/sinks/enforcer.ts'
import { findNodeAddress } from '../../egress/sinks/nft/node-address.ts'
import { startNftEnforcer } from '../../egress/sinks/nft/start-enforcer.ts'
import type { ApiClient } from '../../kube/api.ts'
import { acquireAt } from '../../kube/cluster-access.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { agentOptions, nodeOf } from './agent-options.ts'
import { ApiSocket } from './api-socket.ts'
import { answerLine } from './decision.ts'
import { DryEnforcer } from './dry-enforcer.ts'
import { type EnforcerNumbers, exportNode } from './node-metrics.ts'
import { type ClientFeed, NodeService } from './node-service.ts'
import type { EgressConfig } from './options.ts'
import { CONNTRACK, NFT, probePrograms } from './probe.ts'

/** Elements of all sets of addresses in the kernel. `nft` takes 1.4 kB for each to list them. */
const ELEMENTS_MAX = 100_000

/**
 * Returns the agent that all users with the same options share. Throws InputError if the configuration
 * is invalid.
 */
export async function acquireNode(
  c: SetupContext,
  config: EgressConfig,
): Promise<ResourceLease<NodeService>> {
  const { log, clock, metrics, timers, resources } = c
  const { dialect, policies: path } = config
  const random = new Random(Math.trunc(c.random() * 2 ** 32))
  const everyPod = config.closed.length > 0
  const parts = { log, clock, metrics, timers, random, dialect, everyPod }
  const options = agentOptions(config)
  const dnsAddresses = await dnsAddressesOf(config)
  const node = nodeOf(config)
  if (node === undefined) {
    const key = JSON.stringify(options)
    const create = () => {
      return build(c, { ...config, dnsAddresses }, random, new PolicyFiles({ ...parts, path }))
    }
    return resources.acquire(NodeService, key, create)
  }
  if (node === '') {
    const fix = 'write `kubernetes NODE`, or set the environment variable NODE_NAME'
    throw new InputError(config.position, `plugin/egress: the name of this node is unknown: ${fix}`)
  }
  const create = (api: ApiClient) =>
    build(c, { ...config, dnsAddresses }, random, new KubernetesPolicies({ ...parts, api, node }))
  return acquireAt(config, c, { type: NodeService, options, create })
}

/** The addresses of this node where DNS queries of clients go to. */
async function dnsAddressesOf({ dnsAddresses }: EgressConfig): Promise<readonly string[]> {
  if (dnsAddresses.length > 0) return dnsAddresses
  const found = await Promise.all([findNodeAddress(1), findNodeAddress(2)])
  return found.filter((address) => address !== undefined)
}

interface NumberedEnforcer {
  readonly enforcer: Enforcer
  /** Undefined in a dry run. */
  readonly numbers: (() => EnforcerNumbers) | undefined
}

function build(
  c: SetupContext,
  config: EgressConfig,
  random: Random,
  feed: ClientFeed,
): NodeService {
  const { log, clock, timers, metrics } = c
  const { table, minTtlSeconds, addressesPerName, zombies, idleGraceMs, countsEndpoints } = config
  const rules = new AddressRules(config.cluster, config.allowed)
  const { enforcer, numbers } = makeEnforcer(c, config, rules, () => service.noteRecovery())
  const tracks = table !== undefined && zombies > 0
  const agent = new EgressAgent({
    enforcer,
    rules,
    connections: tracks
      ? new Conntrack({ command: CONNTRACK_COMMAND, timers, random, log })
      : undefined,
    limits: {
      ...AGENT_LIMITS_DEFAULT,
      minTtlSeconds,
      addressesPerName,
      most: zombies,
      idleGraceMs,
    },
    maxDelayMs: config.maxDelayMs,
    cutsConnections: config.cutsConnections,
    clock,
    timers,
    log,
    ...(config.logsDecisions
      ? { onDecision: (one) => log.info(answerLine(one), 'egress-decision') }
      : {}),
    statePath: config.stateFile,
  })
  const stopMetrics = exportNode(metrics, { agent, enforcerNumbers: numbers, countsEndpoints })
  const probes = [...(table === undefined ? [] : [NFT]), ...(tracks ? [CONNTRACK] : [])]
  const service = new NodeService({
    ...config,
    agent,
    feed,
    openApi: config.api === '' ? undefined : (answer) => openApi(c, config.api, answer),
    probe: () => probePrograms(probes, config.position),
    bypasses: new BypassWatch({
      command: NFT_COMMAND,
      hasAnswered: () => agent.counts.answers > 0,
      timers,
      log,
    }),
    clock,
    timers,
    log,
    close: () => {
      stopMetrics()
      void enforcer.close()
    },
  })
  return service
}

const CONNTRACK_COMMAND = ['conntrack']
const NFT_COMMAND = ['nft']

async function openApi(
  { resources, log }: SetupContext,
  path: string,
  answer: AnswerNames,
): Promise<() => void> {
  const { item, release } = resources.acquire(ApiSocket, path, () => new ApiSocket(path, log))
  const stop = await item.add(answer)
  return () => {
    stop()
    release()
  }
}

function makeEnforcer(
  { log, clock, timers }: SetupContext,
  config: EgressConfig,
  rules: AddressRules,
  onRecovery: () => void,
): NumberedEnforcer {
  const { table, port: dnsPort, dnsAddresses, cutsConnections } = config
  if (table === undefined) {
    return { enforcer: new DryEnforcer(log, () => clock.monotonic()), numbers: undefined }
  }
  const enforcer = startNftEnforcer({
    command: NFT_COMMAND,
    table,
    elementsMax: ELEMENTS_MAX,
    clusterNetworks: config.cluster,
    closedNetworks: config.closed,
    dnsPort,
    dnsAddresses,
    cutsConnections,
    isDenied: (address) => rules.denialOf(address) !== undefined,
    clock,
    timers,
    onFault: (fault) => {
      if (fault !== '') {
        log.error(`nftables: transactions fail, and are tried again: ${fault}`, 'nftables-failed')
        return
      }
      log.info('nftables: transactions succeed again', 'nftables-recovered')
      onRecovery()
    },
    onRepair: (what) =>
      log.warning(`nftables: table ${table} was changed by others: ${what}`, 'nftables-repaired'),
  })
  return { enforcer, numbers: () => ({ ...enforcer.counts, refused: enforcer.refused }) }
}
