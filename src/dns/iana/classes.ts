/** DNS classes (IANA "DNS CLASSes"). */
export const RRClass = { IN: 1, CH: 3, HS: 4, NONE: 254, ANY: 255 } as const

const nameOfClass = new Map<number, string>(
  Object.entries(RRClass).map(([name, value]) => [value, name]),
)
const classOfName = new Map<string, number>(Object.entries(RRClass))

/** Returns the mnemonic of a class, or `CLASSn` (RFC 3597 section 5). */
export function printClass(rrclass: number): string {
  return nameOfClass.get(rrclass) ?? `CLASS${rrclass}`
}

/** Returns the class of a mnemonic or `CLASSn`, in any case; undefined if it is neither. */
export function scanClass(text: string): number | undefined {
  const upper = text.toUpperCase()
  const known = classOfName.get(upper)
  if (known !== undefined) return known
  const unknown = /^CLASS(\d{1,5})$/.exec(upper)
  const value = Number(unknown?.[1] ?? Number.NaN)
  return value <= 65535 ? value : undefined
}
