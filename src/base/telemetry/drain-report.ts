/** A drain as JSON. Times are RFC 3339. */
export interface DrainReport {
  readonly id: string
  readonly selector: string
  readonly reason: string
  readonly actor: string
  readonly created?: string
  readonly until?: string
}

/** What a selector selects. */
export interface SelectedCount {
  readonly endpoints: number
  readonly records: number
}

/** Prints a drain for people: `site:dublin by ops until 2026-11-24T18:00:00Z: racks move`. */
export function printDrainReport({ selector, actor, until, reason }: DrainReport): string {
  const by = actor === '' ? '' : ` by ${actor}`
  const end = until === undefined ? '' : ` until ${until}`
  return `${selector}${by}${end}${reason === '' ? '' : `: ${reason}`}`
}
