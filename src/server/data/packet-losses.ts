/** Counts of packets that were lost since the process started. */
export interface PacketLosses {
  overloaded: number
  unbuffered: number
  unsent: number
  late: number
}

export function addLosses(sum: PacketLosses, losses: Readonly<PacketLosses>): void {
  sum.overloaded += losses.overloaded
  sum.unbuffered += losses.unbuffered
  sum.unsent += losses.unsent
  sum.late += losses.late
}
