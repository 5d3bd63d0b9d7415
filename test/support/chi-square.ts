/** χ² of observed counts against shares that sum up to 1. */
export function chiSquare(observed: readonly number[], shares: readonly number[]): number {
  const total = observed.reduce((sum, count) => sum + count, 0)
  return observed.reduce((sum, count, i) => {
    const expected = shares[i]! * total
    return sum + (count - expected) ** 2 / expected
  }, 0)
}

/** Values that χ² exceeds by chance with probability 0.01, by degrees of freedom 1..10. */
export const CHI_SQUARE_AT_1_PERCENT: readonly number[] = [
  0, 6.635, 9.21, 11.345, 13.277, 15.086, 16.812, 18.475, 20.09, 21.666, 23.209,
]
