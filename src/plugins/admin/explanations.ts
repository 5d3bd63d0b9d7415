import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Timers } from '../../base/timers.ts'
import type { AnswerExplainer, ExplainQuestion } from '../../plugin/answer-explainer.ts'

/** Explanations that wait. More are refused. */
const WAITING_MAX = 32
/** An explainer holds location databases in memory, so it is closed if it is not used. */
const IDLE_MS = 10 * 60_000

type OpenExplainer = () => Promise<AnswerExplainer | undefined>

/**
 * Explains answers one at a time, each in a turn of the event loop of its own, so that clients of the
 * API can't keep the thread from its other work. Opens the explainer for the first question.
 */
export class Explanations {
  readonly #open: OpenExplainer
  readonly #timers: Timers
  #explainer: AnswerExplainer | undefined
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
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
  async explain(question: ExplainQuestion): Promise<object | undefined> {
    if (this.#waiting >= WAITING_MAX) return undefined
    this.#waiting++
    const explained = this.#last.then(() => this.#explain(question))
    this.#last = explained.catch(() => {})
    try {
      return await explained
    } finally {
      this.#waiting--
    }
  }

  close(): void {
    this.#isClosed = true
    this.#release()
  }

  async #explain(question: ExplainQuestion): Promise<object | undefined> {
    await nextTurn()
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
