import type { Logger } from '../../base/telemetry/log.ts'
import { oneProblem, type ProblemGroup } from '../../base/telemetry/problems.ts'
import type { SteeringTable } from '../../steering/table.ts'

/** Codes that a line lists. */
const LISTED_MAX = 20

interface UnmatchedCodesParts {
  readonly table: Pick<SteeringTable, 'isUnmatched' | 'onBuilt'>
  /** Returns the geo codes of the endpoints that are served. */
  readonly codes: () => ReadonlySet<string>
  readonly log: Logger
  /** False = the server block has no `geoip`. */
  readonly hasLocator: boolean
}

/**
 * Reports geo codes that match no client of the location databases, because their clients get other endpoints. A new
 * version of a database may have other codes.
 */
export class UnmatchedCodes {
  readonly #parts: UnmatchedCodesParts
  #reported: ReadonlySet<string> = new Set()
  /** Stops the reports. */
  readonly close: () => void

  constructor(parts: UnmatchedCodesParts) {
    this.#parts = parts
    this.close = parts.table.onBuilt(() => this.report())
    this.report()
  }

  /** Logs the codes that match no client since the last report. */
  report(): void {
    const { log } = this.#parts
    const found = this.#find()
    const before = this.#reported
    this.#reported = new Set(found)
    if (found.some((code) => !before.has(code))) {
      log.warning(`geo codes that match no client: ${this.#print(found)}`, 'geo-codes-unmatched')
    } else if (found.length === 0 && before.size > 0)
      log.info('all geo codes match clients again', 'geo-codes-matched')
  }

  /** `of`: the server block. */
  problemGroups(of: string): ProblemGroup[] {
    const found = this.#find()
    if (found.length === 0) return []
    const reason = `geo codes that match no client: ${this.#print(found)}`
    return [oneProblem('geo-code', of, { place: '', object: of, reason })]
  }

  #find(): string[] {
    const { table, codes } = this.#parts
    return [...codes()].filter((code) => table.isUnmatched(code)).sort()
  }

  #print(found: readonly string[]): string {
    const { codes, hasLocator } = this.#parts
    const more = found.length > LISTED_MAX ? ', …' : ''
    const list = `${found.slice(0, LISTED_MAX).join(', ')}${more}`
    if (!hasLocator) return `${list}: the server block has no geoip; add it`
    const isAll = found.length > 1 && found.length === codes().size
    const effect = isAll ? ': all clients get the default endpoints' : ''
    return `${list}${effect}; correct them, or name a location database that has them`
  }
}
