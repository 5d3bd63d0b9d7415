/** True if `a` is later than `b` in serial number arithmetic (RFC 1982 section 3.2). */
export function isSerialAfter(a: number, b: number): boolean {
  const distance = (a - b) >>> 0
  return distance > 0 && distance < 2 ** 31
}
