import { DEFAULT_POLICY_OPTIONS } from '../../../egress/policies/policy.ts'
import { printFieldPath } from '../../../egress/policies/policy-field.ts'
import { identityOf, POLICY_KINDS, type PolicyKind } from '../../../egress/policies/policy-kinds.ts'
import { type ApiObject, textOf } from '../../../kube/api.ts'
import { Informer } from '../../../kube/informer.ts'
import type { ListWatch } from '../../../kube/list-watch.ts'
import { splitKey } from '../../../kube/object-key.ts'
import { Objects } from '../../../kube/objects.ts'
import { WorkQueue } from '../../../kube/work-queue.ts'
import type { ControllerEnv, ControllerSession } from '../../controller.ts'
import { isDeleting, itemsOf, mappingOf } from '../../record/fields.ts'
import { type Condition, printConditions } from '../../status/conditions.ts'
import { endWork } from '../end-work.ts'
import { reasonOfKinds } from '../missing-kinds.ts'

/** The statuses of other kinds belong to other programs. */
const KINDS = POLICY_KINDS.filter(({ resource }) => resource.group === 'policy.networking.k8s.io')
const CONDITION = 'SextantAccepted'
const WORKERS = 4
/** Most parts of a policy that a message lists. */
const LISTED_MAX = 10
/** The condition is written again if one of these fields changes. */
const FIELDS = ['status', 'reason', 'message', 'observedGeneration'] as const

interface Kind {
  readonly kind: PolicyKind
  readonly informer: Informer
}

/**
 * Writes a condition into the status of each policy of the Network Policy API: whether the node agents can enforce
 * all of its egress rules. All agents read a policy in the same way, so one program writes for all of them.
 */
export class PolicyStatusSession implements ControllerSession {
  readonly #env: ControllerEnv
  readonly #client: Objects
  readonly #kinds: readonly Kind[]
  readonly #queue: WorkQueue

  constructor(env: ControllerEnv) {
    this.#env = env
    this.#client = new Objects(env)
    const { log } = env
    this.#kinds = KINDS.map((kind) => ({
      kind,
      informer: new Informer({
        ...env,
        resource: kind.resource,
        equalVersions: kind.equalVersions,
        namespaces: [],
        labelSelector: '',
        // Most clusters lack one of the kinds.
        log: { ...log, warning: log.info },
      }),
    }))
    this.#queue = new WorkQueue({
      ...env,
      what: 'policystatus',
      work: async (key) => void (await this.#reconcile(key)),
      workers: WORKERS,
    })
    for (const { kind, informer } of this.#kinds) {
      const add = (key: string): void => void this.#queue.add(`${kind.resource.plural}/${key}`)
      informer.subscribe({
        onAdd: add,
        onUpdate: add,
        onReturn: () => this.#queue.retryFailed(),
      })
      informer.start()
    }
    this.#queue.start()
  }

  get watches(): readonly ListWatch[] {
    return this.#kinds.flatMap(({ informer }) => informer.watches)
  }

  get reason(): string {
    return reasonOfKinds(this.#kinds.map(({ informer }) => informer))
  }

  async close(): Promise<void> {
    for (const { informer } of this.#kinds) informer.close()
    await endWork(this.#queue, this.#client, this.#env.timers)
  }

  async #reconcile(key: string): Promise<void> {
    const [plural = '', ...rest] = key.split('/')
    const found = this.#kinds.find(({ kind }) => kind.resource.plural === plural)
    const object = found?.informer.get(rest.join('/'))
    if (found === undefined || object === undefined || isDeleting(object)) return
    const { clock, mayWrite } = this.#env
    const { resource } = found.informer
    const present = itemsOf(mappingOf(object, 'status'), 'conditions')
    const before = present.find(({ type }) => type === CONDITION)
    const generation = Number(mappingOf(object, 'metadata').generation ?? 0)
    const wanted = conditionOf(found.kind, object)
    const [next] = printConditions([wanted], present, generation, clock.now())
    if (next === undefined || FIELDS.every((field) => before?.[field] === next[field])) return
    if (!mayWrite()) return
    const others = present.filter((one) => one !== before)
    // Another program may have written its condition meanwhile.
    await this.#client.patchStatus(
      { resource, ...splitKey(rest.join('/')) },
      {
        metadata: { resourceVersion: textOf(object.metadata, 'resourceVersion') },
        status: { conditions: [...others, next] },
      },
    )
  }
}

/** Whether all egress rules of a policy can be enforced. */
function conditionOf(kind: PolicyKind, object: ApiObject): Condition<string> {
  const problems =
    kind.scan?.(object, identityOf(kind, object), DEFAULT_POLICY_OPTIONS).problems ?? []
  if (problems.length === 0) {
    const message = 'sextant node can enforce all egress rules.'
    return { type: CONDITION, isTrue: true, reason: 'Accepted', message }
  }
  const lines = problems
    .slice(0, LISTED_MAX)
    .map(({ path, message }) => `${printFieldPath(path)}: ${message}`)
  const more = problems.length - lines.length
  if (more > 0) lines.push(`and ${more} more`)
  return { type: CONDITION, isTrue: false, reason: 'UnsupportedParts', message: lines.join('; ') }
}
