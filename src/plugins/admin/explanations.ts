import type { Timers } from '../../base/timers.ts'
import type { AnswerExplainer, ExplainQuestion } from '../../plugin/answer-explainer.ts'
import { Turns } from './turns.ts'

/** An explainer holds location databases in memory, so it is closed if it is not used. */
const IDLE_MS = 10 * 60_000

type OpenExplainer = () => Promise<AnswerExplainer | undefined>

/**
 * Explains answers one at a time. Opens the explainer for the first question.
 */
export class Explanations {
  readonly #open: OpenExplainer
  readonly #timers: Timers
  #explainer: AnswerExplainer | undefined
  readonly #turns = new Turns()
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

  async #explain(question: ExplainQuestion): Promise<object | undefined> {
    if (this.#isClosed) return undefined
    if (this.#explainer === undefined) {
      this.#explainer = await this.#open()
      if (this.#isClosed) {
        this.#release()
        return undefined
      }
    }
    this.#stopIdle()
    this.#stopIdle = this.#timers.after(IDLE_MS, () => this.#release())
    return this.#explainer?.explain(question)
  }

  #release(): void {
    this.#stopIdle()
    this.#explainer?.close()
    this.#explainer = undefined
  }
}
