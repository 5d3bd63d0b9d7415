import t from 'tap'
import { type Candidate, WEIGHT_MAX } from '../../src/steering/candidate.ts'
import { shiftWeights } from '../../src/steering/shift.ts'

/** Members with these weights, the targets marked with `>`. */
function members(percent: number | undefined, ...texts: string[]): Candidate[] {
  return texts.map((text, i) => {
    const isTarget = text.startsWith('>')
    const number = text.replace('>', '')
    return {
      ...{ code: undefined, isDefault: false, ttlSeconds: 60, rdataIndexes: [i] },
      weight: number === '-' ? undefined : Number(number),
      shift: percent === undefined ? undefined : { isTarget, percent },
    }
  })
}

const CASES: readonly {
  name: string
  percent?: number
  given: string[]
  want: (number | undefined)[]
}[] = [
  { name: 'no shift', given: ['1', '>-'], want: [1, undefined] },
  { name: 'a target without others', percent: 5, given: ['>7', '>0'], want: [7, 0] },
  { name: 'others without a target', percent: 5, given: ['7', '0'], want: [7, 0] },
  { name: 'others that are standbys', percent: 5, given: ['>7', '0'], want: [7, 0] },
  { name: 'a standby', percent: 5, given: ['1', '3', '>0'], want: [237_500, 712_500, 50_000] },
  { name: 'all standbys', percent: 25, given: ['0', '0', '>0'], want: [375_000, 375_000, 250_000] },
  { name: 'no weights', percent: 40, given: ['-', '>-', '>-'], want: [600_000, 200_000, 200_000] },
  { name: 'the end', percent: 100, given: ['5', '>1', '>3', '>0'], want: [0, 250_000, 750_000, 0] },
  {
    name: 'a weight too small to count stays above 0',
    percent: 0.01,
    given: ['1', `${WEIGHT_MAX}`, `>${WEIGHT_MAX}`, '>1'],
    want: [1, 999_899, 100, 1],
  },
]

for (const { name, percent, given, want } of CASES) {
  t.test(name, async (t) => {
    t.strictSame(shiftWeights(members(percent, ...given)), want)
  })
}
