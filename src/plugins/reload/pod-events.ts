import { Random } from '../../base/random.ts'
import type { ApiClient } from '../../kube/api.ts'
import type { EventRecorder } from '../../kube/event-recorder.ts'
import type { EventSubject } from '../../kube/event-series.ts'
import type { SetupContext } from '../../plugin/directive.ts'

const CONTROLLER = 'sextant.io/server'

/** The Pod of this process, from the variables that the manifests set; undefined = none. */
export function podOf(env: NodeJS.ProcessEnv): EventSubject | undefined {
  const { POD_NAME: name = '', POD_NAMESPACE: namespace = '', POD_UID: uid = '' } = env
  if (name === '' || namespace === '') return undefined
  return { apiVersion: 'v1', kind: 'Pod', namespace, name, uid }
}

/** Opens the API of the cluster in which the Pod runs. */
async function openCluster(): Promise<ApiClient> {
  const { openApi } = await import('../../kube/open-api.ts')
  return (await openApi({ kubeconfig: '', context: '' })).api
}

/** Writes Events about the Pod. Connects to the API with the first one. */
export class PodEvents {
  readonly #context: Pick<SetupContext, 'clock' | 'timers' | 'random' | 'log'>
  readonly #pod: EventSubject
  readonly #open: () => Promise<ApiClient>
  #recorder: Promise<EventRecorder> | undefined

  constructor(
    context: Pick<SetupContext, 'clock' | 'timers' | 'random' | 'log'>,
    pod: EventSubject,
    open = openCluster,
  ) {
    this.#context = context
    this.#pod = pod
    this.#open = open
  }

  /** Records that the Corefile is not in use. Never rejects: without the API, the log has the reason. */
  async recordFault(fault: string): Promise<void> {
    this.#recorder ??= this.#create()
    try {
      const note = `the Corefile that was loaded before is in use: ${fault}`
      const details = {
        type: 'Warning',
        reason: 'CorefileRejected',
        action: 'Reload',
        note,
      } as const
      const recorder = await this.#recorder
      recorder.record(this.#pod, details)
    } catch (error) {
      this.#recorder = undefined
      this.#context.log.warning(
        `events are not written: ${(error as Error).message}`,
        'events-not-written',
      )
    }
  }

  async close(): Promise<void> {
    const recorder = await this.#recorder?.catch(() => undefined)
    recorder?.close()
  }

  async #create(): Promise<EventRecorder> {
    const { EventRecorder } = await import('../../kube/event-recorder.ts')
    const api = await this.#open()
    const { clock, timers, log } = this.#context
    const random = new Random(Math.trunc(this.#context.random() * 2 ** 32))
    const instance = this.#pod.name
    return new EventRecorder({ api, controller: CONTROLLER, instance, clock, timers, random, log })
  }
}
