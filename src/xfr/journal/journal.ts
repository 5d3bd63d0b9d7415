import type { ZoneDifference } from './diff.ts'

/** The differences of a zone, newest last, limited by octets and by number. */
export class ZoneJournal {
  readonly #octetsMax: number
  readonly #stepsMax: number
  #steps: ZoneDifference[] = []
  #octets = 0

  constructor(octetsMax: number, stepsMax: number) {
    this.#octetsMax = octetsMax
    this.#stepsMax = stepsMax
  }

  /**
   * Adds the difference from the newest version. If it starts from another version, clears the
   * older differences.
   */
  push(step: ZoneDifference): void {
    if (this.#steps.length > 0 && this.#steps.at(-1)!.toSerial !== step.fromSerial) this.clear()
    // A serial that is used again would give two paths from one version.
    if (this.#steps.some(({ fromSerial }) => fromSerial === step.toSerial)) this.clear()
    this.#steps.push(step)
    this.#octets += octetsOf(step)
    let drop = 0
    while (this.#octets > this.#octetsMax || this.#steps.length - drop > this.#stepsMax) {
      this.#octets -= octetsOf(this.#steps[drop]!)
      drop++
    }
    if (drop > 0) this.#steps = this.#steps.slice(drop)
  }

  clear(): void {
    this.#steps = []
    this.#octets = 0
  }

  /**
   * Returns the differences from `serial` to the newest version; undefined if they are not known.
   */
  since(serial: number): readonly ZoneDifference[] | undefined {
    const first = this.#steps.findIndex(({ fromSerial }) => fromSerial === serial)
    return first === -1 ? undefined : this.#steps.slice(first)
  }
}

export function octetsOf({ removed, added }: ZoneDifference): number {
  return removed.length + added.length
}
