/** Comparisons between two pauses. */
const SLICE_COMPARISONS = 4096

/**
 * Sorts numbers in place with pauses: a bottom-up merge sort, which compares sorted runs only once.
 * `compare` returns what `Array.prototype.sort` expects.
 */
export function* sortInSlices(
  values: Uint32Array,
  compare: (a: number, b: number) => number,
): Generator<void, void> {
  const merged = new Uint32Array(values.length)
  let comparisons = 0
  for (let width = 1; width < values.length; width *= 2) {
    for (let start = 0; start + width < values.length; start += width * 2) {
      const middle = start + width
      const end = Math.min(middle + width, values.length)
      if (++comparisons % SLICE_COMPARISONS === 0) yield
      if (compare(values[middle - 1]!, values[middle]!) <= 0) continue
      let left = start
      let right = middle
      for (let to = start; to < end; to++) {
        if (++comparisons % SLICE_COMPARISONS === 0) yield
        const takesLeft =
          right === end || (left < middle && compare(values[left]!, values[right]!) <= 0)
        merged[to] = takesLeft ? values[left++]! : values[right++]!
      }
      values.set(merged.subarray(start, end), start)
    }
  }
}
