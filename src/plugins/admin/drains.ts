import type { Clock } from '../../base/clock.ts'
import { scanDuration } from '../../base/duration.ts'
import { InputError, InputErrors } from '../../base/errors.ts'
import { scanTime } from '../../base/rfc3339.ts'
import { type EndpointDrain, isActive } from '../../health/drain/drain.ts'
import { readDrainFile } from '../../health/drain/drain-file.ts'
import type { DrainIndex } from '../../health/drain/drain-index.ts'
import { reportDrain } from '../../health/drain/drain-report.ts'
import { editDrainFile } from '../../health/drain/edit-drain-file.ts'
import { scanWords } from '../../health/drain/quoted-words.ts'
import { scanDrainSelector } from '../../health/drain/selector.ts'
import type {
  AdminDrain,
  AdminDrains,
  AppliedDrain,
  DrainOrder,
} from '../../plugin/admin-drains.ts'

const ACTOR_DEFAULT = 'admin API'

/** The drains in the files that the directives `kuadrant` name. Only these files are read and written. */
export class Drains implements AdminDrains {
  readonly #index: () => DrainIndex | undefined
  readonly #clock: Clock

  /** `index`: undefined before the start. */
  constructor(index: () => DrainIndex | undefined, clock: Clock) {
    this.#index = index
    this.#clock = clock
  }

  list(): readonly AdminDrain[] {
    return this.#paths.flatMap((file) => {
      return this.#read(file).map((drain) => ({ ...reportDrain(drain), file }))
    })
  }

  async add(order: DrainOrder): Promise<AppliedDrain> {
    const { reason = '', actor = ACTOR_DEFAULT, until, allowEmpty = false } = order
    const words = scanWords(order.selector) ?? fail('a string in double quotes is not valid JSON')
    const selector = scanDrainSelector(words)
    if (typeof selector === 'string') return fail(selector)
    const createdMs = this.#clock.now()
    const untilMs = until === undefined ? undefined : scanUntil(until, createdMs)
    const file = this.#choose(order.file)
    const selected = this.#index()!.count(file, selector)
    if (selected.endpoints === 0 && !allowEmpty) {
      return fail(`${selector.text} selects no endpoint; to drain it anyway, set allowEmpty`)
    }
    const drain = { selector, reason, actor, createdMs, untilMs }
    await editDrainFile(file, createdMs, (drains) => {
      return { removed: drains.filter((d) => d.selector.text === selector.text), added: [drain] }
    })
    return { ...reportDrain(drain), file, ...selected }
  }

  async end(id: string): Promise<AdminDrain | undefined> {
    for (const file of this.#paths) {
      if (!this.#read(file).some(({ selector }) => selector.id === id)) continue
      let ended: EndpointDrain | undefined
      await editDrainFile(file, this.#clock.now(), (drains) => {
        ended = drains.find(({ selector }) => selector.id === id)
        return { removed: ended === undefined ? [] : [ended], added: [] }
      })
      if (ended !== undefined) return { ...reportDrain(ended), file }
    }
    return undefined
  }

  get #paths(): readonly string[] {
    return this.#index()?.paths ?? []
  }

  /** Returns the drains in force. */
  #read(file: string): EndpointDrain[] {
    const { drains, faults } = readDrainFile(file)
    const [first, ...others] = faults
    if (first !== undefined) throw new InputErrors(first, others)
    return drains.map(({ drain }) => drain).filter((drain) => isActive(drain, this.#clock.now()))
  }

  #choose(file: string | undefined): string {
    const paths = this.#paths
    const [path, ...others] = file === undefined ? paths : paths.filter((one) => one === file)
    if (path !== undefined && others.length === 0) return path
    if (paths.length === 0) return fail('no directive kuadrant has `drain FILE`')
    return fail(`choose a drain file with the member file: ${paths.join(', ')}`)
  }
}

/** Returns milliseconds since the epoch. */
function scanUntil(text: string, nowMs: number): number {
  const durationMs = scanDuration(text)
  const untilMs = durationMs === undefined ? scanTime(text) : nowMs + durationMs
  if (untilMs === undefined) {
    return fail(`until ${JSON.stringify(text)} is neither a duration, such as 2h, nor a time`)
  }
  return untilMs > nowMs ? untilMs : fail(`until ${text} is in the past`)
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}
