/** A plugin's readiness: `check` returns why it is not ready, or ''. */
export interface ReadyCheck {
  readonly name: string
  readonly check: () => string
}

/** A plugin that is not ready. */
export interface Unready {
  readonly name: string
  readonly reason: string
}

/** Keeps track of which plugins are ready. */
export class Readiness {
  readonly #checks: readonly ReadyCheck[]
  readonly #continuously: boolean
  readonly #done = new Set<ReadyCheck>()

  /** `continuously`: false = a plugin that was ready once is not asked again. */
  constructor(checks: readonly ReadyCheck[], continuously: boolean) {
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

  /** Of the plugins that count as ready for good, those that would not be now, by name. */
  notes(): Unready[] {
    const notes: Unready[] = []
    for (const { name, check } of this.#done) {
      const reason = check()
      if (reason !== '') notes.push({ name, reason })
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

function printReasons(unready: readonly Unready[]): string[] {
  return unready.map(({ name, reason }) => `${name}: ${reason}`)
}
