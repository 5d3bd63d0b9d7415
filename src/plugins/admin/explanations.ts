import type { Timers } from '../../base/timers.ts'
import type { WhatIfOrder, WhatIfReply } from '../../plugin/admin-what-if.ts'
import type { AnswerExplainer, ExplainQuestion } from '../../plugin/answer-explainer.ts'
import { Turns } from './turns.ts'

/** An explainer holds location databases in memory, so it is closed if it is not used. */
const IDLE_MS = 10 * 60_000

/** Comparisons that wait, with the one that runs. */
const COMPARISONS_MAX = 4

type OpenExplainer = () => Promise<AnswerExplainer | undefined>

/**
 * Explains answers one at a time. Opens the explainer for the first question.
 */
export class Explanations {
  readonly #open: OpenExplainer
  readonly #timers: Timers
  #explainer: AnswerExplainer | undefined
  /** While it is opened. */
  #opening: Promise<AnswerExplainer | undefined> | undefined
  readonly #turns = new Turns()
  readonly #comparisons = new Turns(COMPARISONS_MAX)
  #isClosed = false
  #stopIdle: () => void = () => {}

  constructor(open: OpenExplainer, timers: Timers) {
    this.#open = open
    this.#timers = timers
  }

  /**
   * Resolves to the explanation; undefined = too many wait, or the server stops. Rejects with
   * InputError if the question is invalid.
   */
  explain(question: ExplainQuestion): Promise<object | undefined> {
    return this.#turns.run(() => this.#explain(question))
  }

  close(): void {
    this.#isClosed = true
    this.#release()
  }

  /** As `explain`, for a comparison. Fewer wait, because each takes up to some seconds. */
  whatIf(order: WhatIfOrder): Promise<WhatIfReply | undefined> {
    return this.#comparisons.run(async () => (await this.#opened())?.whatIf(order))
  }

  async #explain(question: ExplainQuestion): Promise<object | undefined> {
    return (await this.#opened())?.explain(question)
  }

  /** Resolves to undefined if the server stops. */
  async #opened(): Promise<AnswerExplainer | undefined> {
    if (this.#isClosed) return undefined
    if (this.#explainer === undefined) {
      this.#opening ??= this.#open()
      this.#explainer = await this.#opening.finally(() => {
        this.#opening = undefined
      })
      if (this.#isClosed) {
        this.#release()
        return undefined
      }
    }
    this.#stopIdle()
    this.#stopIdle = this.#timers.after(IDLE_MS, () => this.#release())
    return this.#explainer
  }

  #release(): void {
    this.#stopIdle()
    this.#explainer?.close()
    this.#explainer = undefined
  }
}
