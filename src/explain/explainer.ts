import { EventLog } from '../base/telemetry/event-log.ts'
import { LOCATOR } from '../geo/locator.ts'
import type { AnswerMap, MapQuestion } from '../plugin/admin-map.ts'
import type { WhatIfOrder, WhatIfReply } from '../plugin/admin-what-if.ts'
import { ExplainableIndex } from '../publish/explainable.ts'
import { PreviewIndex } from '../publish/preview/preview-index.ts'
import type { Instance } from '../server/instance.ts'
import { Replay } from '../server/replay.ts'
import { ChoiceTrace } from '../steering/trace.ts'
import { explain } from './explain.ts'
import type { ExplainRequest } from './explain-request.ts'
import type { Explanation } from './explanation.ts'
import { LiveWhatIf } from './live-what-if.ts'
import { AnswerMaps } from './map/answer-map.ts'

/** Explains the answers of one instance, which runs in this thread. */
export class Explainer {
  readonly #trace = new ChoiceTrace()
  readonly #index: ExplainableIndex
  readonly #replay: Replay
  readonly #whatIf: LiveWhatIf
  readonly #maps: AnswerMaps
  readonly #stops: (() => void)[] = []

  private constructor(instance: Instance) {
    const { resources } = instance.parts
    const index = resources.acquire(ExplainableIndex, '', () => new ExplainableIndex())
    this.#index = index.item
    this.#stops.push(index.release)
    this.#replay = new Replay(instance, {
      steererOf: (snapshots) => this.#trace.steerer(snapshots),
      random: this.#trace.random,
    })
    this.#stops.push(() => this.#replay.close())
    const previews = resources.acquire(PreviewIndex, '', () => new PreviewIndex())
    this.#stops.push(previews.release)
    this.#whatIf = new LiveWhatIf(instance, previews.item)
    const { clock } = instance.parts
    this.#maps = new AnswerMaps({
      ...{ replay: this.#replay, index: this.#index, previews: previews.item, clock },
      events: () => resources.find(EventLog, ''),
    })
    this.#stops.push(() => this.#maps.close())
  }

  /**
   * Sets the directives of the instance up once more, and reads its location databases into memory,
   * so that an explanation can name their entries. Rejects with an InputError if one can't be read.
   */
  static async open(instance: Instance): Promise<Explainer> {
    const explainer = new Explainer(instance)
    try {
      for (const { shared } of instance.configs) {
        const end = await shared.find(LOCATOR)?.readEntries?.()
        if (end !== undefined) explainer.#stops.push(end)
      }
    } catch (error) {
      explainer.close()
      throw error
    }
    return explainer
  }

  /** True if the instance serves at least one address. */
  get serves(): boolean {
    return this.#replay.plans.length > 0
  }

  /** See `explain`. `serves` is true. */
  explain(request: ExplainRequest): Explanation {
    return explain(request, { replay: this.#replay, trace: this.#trace, index: this.#index })
  }

  /** See `LiveWhatIf`. */
  whatIf(order: WhatIfOrder): Promise<WhatIfReply> {
    return this.#whatIf.compare(order)
  }

  /** See `AnswerMaps`. */
  map(question: MapQuestion): Promise<AnswerMap> {
    return this.#maps.map(question)
  }

  close(): void {
    for (const stop of this.#stops.splice(0)) stop()
  }
}
