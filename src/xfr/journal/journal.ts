import type { ZoneDifference } from './diff.ts'

/** Differences of a zone, the newest last, bounded by octets and by number. */
export class ZoneJournal {
  readonly #octetsMax: number
  readonly #stepsMax: number
  #steps: ZoneDifference[] = []
  #octets = 0

  constructor(octetsMax: number, stepsMax: number) {
    this.#octetsMax = octetsMax
    this.#stepsMax = stepsMax
  }

  get octets(): number {
    return this.#octets
  }

  get length(): number {
    return this.#steps.length
  }

  /** Adds what leads on from the newest version; where it does not, what was known is of no more use. */
  push(step: ZoneDifference): void {
    if (this.#steps.length > 0 && this.#steps.at(-1)!.toSerial !== step.fromSerial) this.clear()
    // A serial that comes round again would make two ways from one place.
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

  /** What leads from `serial` to the newest version; undefined if that is not known. */
  since(serial: number): readonly ZoneDifference[] | undefined {
    const first = this.#steps.findIndex(({ fromSerial }) => fromSerial === serial)
    return first === -1 ? undefined : this.#steps.slice(first)
  }
}

export function octetsOf({ removed, added }: ZoneDifference): number {
  return removed.length + added.length
}
