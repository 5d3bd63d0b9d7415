import type { Timers } from '../../base/timers.ts'
import type { AnswerMap, MapQuestion } from '../../plugin/admin-map.ts'
import type { WhatIfOrder, WhatIfReply } from '../../plugin/admin-what-if.ts'
import type { AnswerExplainer, ExplainQuestion } from '../../plugin/answer-explainer.ts'
import { Turns } from './turns.ts'

/** An explainer holds location databases in memory, so it is closed if it is not used. */
const IDLE_MS = 10 * 60_000

/** Comparisons that wait, with the one that runs. */
const COMPARISONS_MAX = 4

type OpenExplainer = () => Promise<AnswerExplainer | undefined>

/**
 * Explains answers one at a time, and makes maps of them one at a time. Opens the explainer for the first question.
 */
export class Explanations {
  readonly #open: OpenExplainer
  readonly #timers: Timers
  #explainer: Promise<AnswerExplainer | undefined> | undefined
  readonly #turns = new Turns()
  readonly #comparisons = new Turns(COMPARISONS_MAX)
  /** Threads compute parts of a map, so explanations do not wait for it. */
  readonly #mapTurns = new Turns()
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
    return this.#turns.run(async () => (await this.#use())?.explain(question))
  }

  /** Resolves to a map, in the same way. */
  map(question: MapQuestion): Promise<AnswerMap | undefined> {
    return this.#mapTurns.run(async () => (await this.#use())?.map(question))
  }

  close(): void {
    this.#isClosed = true
    this.#release()
  }

  /** As `explain`, for a comparison. Fewer wait, because each takes up to some seconds. */
  whatIf(order: WhatIfOrder): Promise<WhatIfReply | undefined> {
    return this.#comparisons.run(async () => (await this.#use())?.whatIf(order))
  }

  async #use(): Promise<AnswerExplainer | undefined> {
    if (this.#isClosed) return undefined
    this.#explainer ??= this.#opened()
    const explainer = await this.#explainer
    if (this.#isClosed) return undefined
    this.#stopIdle()
    this.#stopIdle = this.#timers.after(IDLE_MS, () => this.#release())
    return explainer
  }

  /** Resolves to undefined if the server reloads or stops; then the next question opens it. */
  async #opened(): Promise<AnswerExplainer | undefined> {
    let explainer: AnswerExplainer | undefined
    try {
      explainer = await this.#open()
    } finally {
      if (explainer === undefined) this.#explainer = undefined
    }
    if (!this.#isClosed) return explainer
    explainer?.close()
    return undefined
  }

  #release(): void {
    this.#stopIdle()
    const opened = this.#explainer
    this.#explainer = undefined
    // A failure to open is that of the question.
    opened?.then(
      (explainer) => explainer?.close(),
      () => {},
    )
  }
}
