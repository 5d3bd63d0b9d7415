import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/telemetry/log.ts'
import type { ProblemGroup } from '../../base/telemetry/problems.ts'
import type { Timers } from '../../base/timers.ts'
import { ClockGuard } from '../../signing/zone/clock-guard.ts'

const CHECK_MS = 60_000

/** Reports a clock with which the threads make no signatures on demand: each of them has a guard of its own. */
export class ClockWatch {
  readonly #guard: ClockGuard
  readonly #log: Logger
  readonly #of: string
  readonly #stop: () => void
  #fault = ''

  /** `of`: the server block. */
  constructor(of: string, { clock, timers, log }: { clock: Clock; timers: Timers; log: Logger }) {
    this.#guard = new ClockGuard(clock)
    this.#log = log
    this.#of = of
    this.#stop = timers.every(CHECK_MS, () => this.#check())
    this.#check()
  }

  get problems(): readonly ProblemGroup[] {
    this.#check()
    const reason = `no new signatures on demand: ${this.#fault}`
    const problems = this.#fault === '' ? [] : [{ place: '', object: 'the clock', reason }]
    return [{ kind: 'signature', of: `dnssec ${this.#of}`, count: problems.length, problems }]
  }

  stop(): void {
    this.#stop()
  }

  #check(): void {
    const fault = this.#guard.refusal(0)
    const isChanged = (fault === '') !== (this.#fault === '')
    this.#fault = fault
    if (!isChanged) return
    if (fault === '') this.#log.info('signatures are made on demand again', 'dnssec-clock-right')
    else this.#log.error(`no new signatures on demand: ${fault}`, 'dnssec-clock-wrong')
  }
}
