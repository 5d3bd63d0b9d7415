/** DNS operation codes (IANA "DNS OpCodes"). */
export const Opcode = { QUERY: 0, IQUERY: 1, STATUS: 2, NOTIFY: 4, UPDATE: 5, DSO: 6 } as const

const nameOfOpcode = new Map<number, string>(
  Object.entries(Opcode).map(([name, value]) => [value, name]),
)

export function printOpcode(opcode: number): string {
  return nameOfOpcode.get(opcode) ?? `RESERVED${opcode}`
}
