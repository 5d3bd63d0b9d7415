import { keyName } from './key-text.ts'
import { dueSeconds, type PlanInput, plan, type RollPlan } from './plan.ts'
import { type OldVersion, TIMELINES } from './roll-state.ts'

/** What happens next. */
export interface NextStep {
  /** Undefined = when others have done their part. */
  readonly atSeconds: number | undefined
  readonly text: string
}

/** What caches may still have of each. */
const OLDER = { dnskey: 'answers for DNSKEY', signers: 'signatures', ds: 'answers for DS' } as const
/** Longest time that can be written as a date. */
const SECONDS_MAX = 8e12

/** Returns the next step after a plan that was carried out; undefined = none is due, ever. */
export function nextStep(
  input: Omit<PlanInput, 'state'>,
  { state }: RollPlan,
): NextStep | undefined {
  const ends = TIMELINES.flatMap((name) =>
    state[name].older.map(({ untilSeconds }) => untilSeconds),
  )
  const ages = state.keys
    .filter(({ isWanted }) => isWanted)
    .map((key) => dueSeconds(key, input.policy))
  const times = [...new Set([...ends, ...ages])]
    .filter((time) => time > input.nowSeconds && time < SECONDS_MAX)
    .sort((a, b) => a - b)
  const wait = waiting(state)
  for (const nowSeconds of times) {
    const { steps, retire } = plan({ ...input, state, nowSeconds })
    const texts = [...steps, ...retire.map(() => 'move a key out of use')]
    if (texts.length === 0) continue
    // The end of a lifetime may be far away, and the roll goes on before it.
    const before = wait === undefined || ends.includes(nowSeconds) ? '' : `${wait.text}; `
    return { atSeconds: nowSeconds, text: `${before}${texts.join(', ')}` }
  }
  return wait
}

function waiting({ dnskey, signers, ds, keys }: RollPlan['state']): NextStep | undefined {
  if (!dnskey.isKnown || !signers.isKnown) {
    return { atSeconds: undefined, text: 'wait until a version signed with these keys is served' }
  }
  if (ds.isKnown) return undefined
  const wanted = keys.filter(({ id }) => ds.keys.includes(id))
  const text =
    wanted.length === 0 ? 'no DS' : `the DS of ${wanted.map(keyName).join(' and ')} alone`
  return { atSeconds: undefined, text: `wait until the parent has ${text}` }
}

/** The wait until caches have dropped all that was served before, also if no step follows; undefined = they have. */
export function waitForCaches(state: RollPlan['state'], nowSeconds: number): NextStep | undefined {
  const isLive = ({ untilSeconds }: OldVersion): boolean =>
    untilSeconds > nowSeconds && untilSeconds < SECONDS_MAX
  const names = TIMELINES.filter((name) => state[name].older.some(isLive))
  if (names.length === 0) return undefined
  const older = names.flatMap((name) => state[name].older.filter(isLive))
  return {
    atSeconds: Math.max(...older.map(({ untilSeconds }) => untilSeconds)),
    text: `wait until no cache has older ${names.map((name) => OLDER[name]).join(' or ')}`,
  }
}
