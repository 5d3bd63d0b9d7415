import { InputError, type Position } from '../../base/errors.ts'
import { lazyKey } from '../../base/shared-values.ts'
import type { EgressConfig } from './options.ts'

/** What the agent depends on, besides the contents of the kubeconfig file. */
export function agentOptions(config: EgressConfig): object {
  const { position, denyRcode, onTimeout, concurrency, startupMs, ...options } = config
  const node = nodeOf(config)
  const { cluster, closed, allowed } = config
  const networks = { cluster: printed(cluster), closed: printed(closed), allowed: printed(allowed) }
  return { ...options, node, ...networks }
}

/** The name of this node; '' = unknown. Undefined = without Kubernetes. */
export function nodeOf({ node }: EgressConfig): string | undefined {
  return node === '' ? (process.env.NODE_NAME ?? '') : node
}

/** Octets of networks, in a form that JSON shows. */
function printed(networks: EgressConfig['cluster']): readonly string[] {
  return networks.map(({ bytes, bits }) => `${bytes.join('.')}/${bits}`)
}

interface Owner {
  readonly options: string
  readonly position: Position
}

/**
 * What the agents of one Corefile write: tables, files and sockets. Blocks with the same options share one
 * agent; two agents with one table would undo each other's changes.
 */
class AgentOutputs {
  readonly #owners = new Map<string, Owner>()

  /** Notes the agent of a block. Throws InputError if a block with other options has one of its outputs. */
  add(config: EgressConfig): void {
    const { position, table = '', stateFile, api } = config
    const options = JSON.stringify(agentOptions(config))
    const outputs = { table, state: stateFile, api }
    for (const [property, name] of Object.entries(outputs)) {
      if (name === '') continue
      const key = `${property} ${name}`
      const owner = this.#owners.get(key)
      if (owner === undefined) this.#owners.set(key, { options, position })
      else if (owner.options !== options) throw sharedOutput(key, position, owner.position)
    }
  }
}

function sharedOutput(output: string, position: Position, { file, line }: Position): InputError {
  const fix = 'write the same options, also `port`, or use another one'
  return new InputError(
    position,
    `${output} is in use at ${file}:${line} with other options: ${fix}`,
  )
}

export const AGENT_OUTPUTS = lazyKey('outputs of egress agents', () => new AgentOutputs())
