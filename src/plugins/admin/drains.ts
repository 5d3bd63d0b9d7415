import type { Clock } from '../../base/clock.ts'
import { scanDuration } from '../../base/duration.ts'
import { InputError, InputErrors } from '../../base/errors.ts'
import { scanTime } from '../../base/rfc3339.ts'
import { runInSlices } from '../../base/slices.ts'
import { type EndpointDrain, isActive, printDrain, reportDrain } from '../../health/drain/drain.ts'
import { readDrainFile } from '../../health/drain/drain-file.ts'
import type { DrainIndex } from '../../health/drain/drain-index.ts'
import { editDrainFile } from '../../health/drain/edit-drain-file.ts'
import { scanWords } from '../../health/drain/quoted-words.ts'
import { scanDrainSelector } from '../../health/drain/selector.ts'
import type {
  AdminDrain,
  AdminDrains,
  AppliedDrain,
  DrainList,
  DrainOrder,
} from '../../plugin/admin-drains.ts'
import { Turns } from './turns.ts'

const ACTOR_DEFAULT = 'admin API'
/** Most drains by annotations that are listed: each record may have one. */
const UNFILED_MAX = 1000

/** The drains in the files that the directives `kuadrant` name. Only these files are read and written. */
export class Drains implements AdminDrains {
  readonly #index: () => DrainIndex | undefined
  readonly #clock: Clock
  readonly #turns = new Turns()

  /** `index`: undefined before the start. */
  constructor(index: () => DrainIndex | undefined, clock: Clock) {
    this.#index = index
    this.#clock = clock
  }

  list(): DrainList {
    const filed = this.#paths.flatMap((file) => {
      return this.#read(file).map((drain) => ({ ...reportDrain(drain), file }))
    })
    const others = this.#index()?.unfiled ?? []
    const listed = others
      .slice(0, UNFILED_MAX)
      .map((drain) => ({ ...reportDrain(drain), file: '' }))
    return { drains: [...filed, ...listed], drainsOmitted: others.length - listed.length }
  }

  add(order: DrainOrder): Promise<AppliedDrain | undefined> {
    return this.#turns.run(() => this.#add(order))
  }

  async #add(order: DrainOrder): Promise<AppliedDrain> {
    const { reason = '', actor = ACTOR_DEFAULT, until, allowEmpty = false } = order
    const words =
      scanWords(order.selector) ?? fail('selector: a string in double quotes is not valid JSON')
    const selector = scanDrainSelector(words)
    if (typeof selector === 'string') return fail(selector)
    const createdMs = this.#clock.now()
    const untilMs = until === undefined ? undefined : scanUntil(until, createdMs)
    const file = this.#choose(order.file)
    const selected = await runInSlices(this.#index()!.count(file, selector), this.#clock)
    if (selected.endpoints === 0 && !allowEmpty) {
      return fail(
        `${selector.text} selects no endpoint; to drain it anyway, set allowEmpty (--allow-empty)`,
      )
    }
    const drain = { selector, reason, actor, createdMs, untilMs }
    await editDrainFile(file, createdMs, (drains) => {
      return { removed: drains.filter((d) => d.selector.text === selector.text), added: [drain] }
    })
    return { ...reportDrain(drain), file, ...selected }
  }

  async end(id: string): Promise<readonly AdminDrain[]> {
    const isSelected = ({ selector }: EndpointDrain): boolean => selector.id === id
    // An invalid file is found before another one is changed.
    const files = this.#paths.filter((file) => this.#read(file).some(isSelected))
    const ended: AdminDrain[] = []
    for (const file of files) {
      let removed: readonly EndpointDrain[] = []
      await editDrainFile(file, this.#clock.now(), (drains) => {
        removed = drains.filter(isSelected)
        return { removed, added: [] }
      })
      for (const drain of removed) ended.push({ ...reportDrain(drain), file })
    }
    const other = this.#index()?.unfiled.find(isSelected)
    if (ended.length > 0 || other === undefined) return ended
    return fail(
      `${printDrain(other)}: this drain is not in a drain file; remove its annotation, or activate its group`,
    )
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
    if (paths.length === 0)
      return fail('the Corefile names no drain file; add `drain FILE` to kuadrant')
    return fail(`file (--file) must be one of the drain files of the Corefile: ${paths.join(', ')}`)
  }
}

/** Returns milliseconds since the epoch. */
function scanUntil(text: string, nowMs: number): number {
  const durationMs = scanDuration(text)
  const untilMs = durationMs === undefined ? scanTime(text) : nowMs + durationMs
  if (untilMs === undefined) {
    return fail(
      `until ${JSON.stringify(text)} is neither a duration, such as 2h, nor a time (RFC 3339)`,
    )
  }
  return untilMs > nowMs ? untilMs : fail(`until ${text} is in the past`)
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}
