import type { ReadinessCheck } from '../../plugin/directive.ts'

/** A plugin that is not ready. */
export interface Unready {
  readonly name: string
  readonly reason: string
}

/** Keeps track of which plugins are ready. */
export class Readiness {
  readonly #checks: readonly ReadinessCheck[]
  readonly #continuously: boolean
  readonly #done = new Set<ReadinessCheck>()

  /** `continuously`: false = a plugin that was ready once is not asked again. */
  constructor(checks: readonly ReadinessCheck[], continuously: boolean) {
    this.#checks = checks
    this.#continuously = continuously
  }

  /** The plugins that are not ready, by name; every plugin is asked. */
  unready(): Unready[] {
    const unready: Unready[] = []
    for (const check of this.#checks) {
      if (this.#done.has(check)) continue
      const reason = check.check()
      if (reason !== '') unready.push({ name: check.name, reason })
      else if (!this.#continuously) this.#done.add(check)
    }
    return unready.sort(byName)
  }

  /**
   * What there is to say while all are ready, by name: which of the plugins that count as ready for
   * good would not be now, and what plugins note themselves.
   */
  notes(): Unready[] {
    const notes: Unready[] = []
    for (const check of this.#checks) {
      const { name, note } = check
      const reasons = [this.#done.has(check) ? check.check() : '', note?.() ?? '']
      for (const reason of reasons) if (reason !== '') notes.push({ name, reason })
    }
    return notes.sort(byName)
  }
}

function byName(a: Unready, b: Unready): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/** The names once each, comma-separated, and below them a line for each reason. */
export function printUnready(unready: readonly Unready[]): string {
  const names = [...new Set(unready.map(({ name }) => name))].join(',')
  return [names, ...printReasons(unready)].join('\n')
}

/** `OK`, and below it a line for each reason. */
export function printReady(notes: readonly Unready[]): string {
  return ['OK', ...printReasons(notes)].join('\n')
}

/** Each once: blocks over one source have the same to say. */
function printReasons(unready: readonly Unready[]): string[] {
  return [...new Set(unready.map(({ name, reason }) => `${name}: ${reason}`))]
}
