/*
 * Copies and comparisons of a few octets, in units of eight and four. V8 checks both arrays in
 * every iteration of a loop, which costs more than the octet. A call of `set` or `subarray` costs
 * more than fifty octets.
 */

/** Copies `octets` octets from `from[fromAt]` to `to[toAt]`; they do not overlap. @hot */
export function copyOctets(
  from: Uint8Array,
  fromAt: number,
  to: Uint8Array,
  toAt: number,
  octets: number,
): void {
  let f = fromAt
  let t = toAt
  const end = fromAt + octets
  for (; f + 8 <= end; f += 8, t += 8) {
    to[t] = from[f]!
    to[t + 1] = from[f + 1]!
    to[t + 2] = from[f + 2]!
    to[t + 3] = from[f + 3]!
    to[t + 4] = from[f + 4]!
    to[t + 5] = from[f + 5]!
    to[t + 6] = from[f + 6]!
    to[t + 7] = from[f + 7]!
  }
  if (f + 4 <= end) {
    to[t] = from[f]!
    to[t + 1] = from[f + 1]!
    to[t + 2] = from[f + 2]!
    to[t + 3] = from[f + 3]!
    f += 4
    t += 4
  }
  if (f + 2 <= end) {
    to[t] = from[f]!
    to[t + 1] = from[f + 1]!
    f += 2
    t += 2
  }
  if (f < end) to[t] = from[f]!
}

/** Whether `octets` octets from `a[aAt]` and `b[bAt]` on are the same; both arrays have them. @hot */
export function equalOctets(
  a: Uint8Array,
  aAt: number,
  b: Uint8Array,
  bAt: number,
  octets: number,
): boolean {
  let i = aAt
  let k = bAt
  const end = aAt + octets
  for (; i + 4 <= end; i += 4, k += 4) {
    const isEqual =
      a[i] === b[k] && a[i + 1] === b[k + 1] && a[i + 2] === b[k + 2] && a[i + 3] === b[k + 3]
    if (!isEqual) return false
  }
  for (; i < end; i++, k++) if (a[i] !== b[k]) return false
  return true
}
