import { type Candidate, WEIGHT_DEFAULT, WEIGHT_MAX } from './candidate.ts'

type Weights = readonly (number | undefined)[]

/**
 * Returns the weights of one tier's members during a shift: its targets together have their share,
 * and the others have the rest. Each group keeps its proportions. Without a shift, and in a tier of
 * one group alone, the members have their own weights; so have targets whose others are standbys.
 */
export function shiftWeights(members: readonly Candidate[]): Weights {
  const own = members.map(({ weight }) => weight)
  const percent = members[0]?.shift?.percent
  if (percent === undefined) return own
  const areTargets = members.map(({ shift }) => shift?.isTarget === true)
  const full = own.map((weight) => weight ?? WEIGHT_DEFAULT)
  const targets = full.filter((_, i) => areTargets[i])
  const others = full.filter((_, i) => !areTargets[i])
  if (targets.length === 0 || others.length === 0) return own
  if (sumOf(others) === 0 && sumOf(targets) > 0) return own
  const scaleTarget = scaler(targets, percent)
  const scaleOther = scaler(others, 100 - percent)
  return full.map((weight, i) => (areTargets[i] ? scaleTarget(weight) : scaleOther(weight)))
}

/** Returns the function that scales weights of a group so that they have that part of WEIGHT_MAX. */
function scaler(group: readonly number[], percent: number): (weight: number) => number {
  if (percent === 0) return () => 0
  const sum = sumOf(group)
  // Standbys alone have equal shares.
  const unit = (WEIGHT_MAX * percent) / 100 / (sum === 0 ? group.length : sum)
  return (weight) => {
    if (sum === 0) return Math.max(1, Math.round(unit))
    return weight === 0 ? 0 : Math.max(1, Math.round(weight * unit))
  }
}

function sumOf(weights: readonly number[]): number {
  return weights.reduce((sum, weight) => sum + weight, 0)
}
