import { countUnlisted, type Problems } from '../../base/telemetry/problems.ts'
import type { ReadinessCheck } from '../../plugin/directive.ts'

/** A plugin that is not ready. */
interface Unready {
  readonly name: string
  readonly reason: string
}

/** Tracks which plugins are ready. */
export class Readiness {
  readonly #checks: readonly ReadinessCheck[]
  readonly #continuously: boolean
  readonly #done = new Set<ReadinessCheck>()

  /** `continuously`: false = a plugin that was ready once is not checked again. */
  constructor(checks: readonly ReadinessCheck[], continuously: boolean) {
    this.#checks = checks
    this.#continuously = continuously
  }

  /** The plugins that are not ready, by name. Checks every plugin. */
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
   * Notes to show while all plugins are ready, by name: plugins that count as ready although they
   * are not ready now, and notes of the plugins themselves. `explained`: plugins whose problems are
   * shown beside the notes.
   */
  notes(explained: ReadonlySet<string>): Unready[] {
    const notes: Unready[] = []
    for (const check of this.#checks) {
      const { name, note } = check
      const isLost = this.#done.has(check) && !explained.has(name)
      const reasons = [isLost ? check.check() : '', note?.() ?? '']
      for (const reason of reasons) if (reason !== '') notes.push({ name, reason })
    }
    return notes.sort(byName)
  }
}

function byName(a: Unready, b: Unready): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0
}

/** The names, each once, separated by commas, followed by a line for each reason. */
export function printUnready(unready: readonly Unready[]): string {
  const names = [...new Set(unready.map(({ name }) => name))].join(',')
  return [names, ...printReasons(unready)].join('\n')
}

/** `OK`, followed by a line for each note and problem. */
export function printReady(notes: readonly Unready[], problems: readonly string[]): string {
  return ['OK', ...printReasons(notes), ...problems].join('\n')
}

/** A line for each problem, and one for those of a kind that are not listed. */
export function printProblems({ listed, counts }: Problems): string[] {
  const lines = listed.map(({ plugin, place, reason }) => {
    return [plugin, reason.includes(place) ? '' : place, reason].filter(Boolean).join(': ')
  })
  const more = countUnlisted(listed, counts).map(([kind, count]) => `and ${count} more: ${kind}`)
  return [...lines, ...more]
}

/** Each line once: blocks over one source have the same reasons. */
function printReasons(unready: readonly Unready[]): string[] {
  return [...new Set(unready.map(({ name, reason }) => `${name}: ${reason}`))]
}
