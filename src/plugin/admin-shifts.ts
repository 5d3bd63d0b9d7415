import type { ShiftReport } from '../base/telemetry/status.ts'

/** Shifts of traffic. */
export interface ShiftList {
  readonly shifts: readonly ShiftReport[]
  readonly shiftsOmitted: number
}

/** A shift to begin, as a client wrote it. */
export interface ShiftRequest {
  /** The root host of the DNSRecords. */
  readonly name: string
  /** The set identifier that traffic moves to. */
  readonly to: string
  /** `5%,25%,100%`. */
  readonly steps: string
  /** How long each step lasts: `10m`. */
  readonly bake: string
  readonly reason?: string
  readonly actor?: string
}

/** The shifts of a server. Its functions reject with InputError if an order is invalid. */
export interface AdminShifts {
  list(): ShiftList
  /** Replaces the shift that was ordered for the host before. Resolves to undefined if too many orders wait. */
  begin(request: ShiftRequest): Promise<ShiftReport | undefined>
  /** Ends the ordered shifts with that id: the weights of the records apply. Returns them; empty = none has it. */
  end(id: string): readonly ShiftReport[]
}
