import t from 'tap'
import { SLICE_MS } from '../../../src/base/slices.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { encodeSteering, NO_POLICY } from '../../../src/steering/encode.ts'
import { wire } from '../../support/zone-text.ts'
import { SigningStage } from './signing-stage.ts'

/** Each name has so many answers, of three endpoints each. */
const ANSWERS = 1140
const ENDPOINTS = 20
const NAMES = 6
/** The first two, with the apex, show that all are too much for one step; they are planned together. */
const TURNS = NAMES - 2

/** A stage in which each look at the clock ends a slice. */
function createStage(): { stage: SigningStage; touch: () => void } {
  const stage = new SigningStage()
  stage.clock.monotonic = () => {
    stage.clock.monotonicMs += SLICE_MS
    return stage.clock.monotonicMs
  }
  const endpoints = Array.from({ length: ENDPOINTS }, (_, i) => i)
  const tier = endpoints.map((i) => ({ weight: 1, ttlSeconds: 60, rdataIndexes: [i] }))
  const rdata = endpoints.map((i) => Uint8Array.of(192, 0, 2, i))
  const steering = encodeSteering(NO_POLICY, [tier], { answers: 3 })
  stage.put('example.', RRType.NS, [wire('ns.other.')])
  const names = Array.from({ length: NAMES }, (_, i) => `n${i}.example.`)
  const touch = (): void => {
    for (const name of names) stage.signer.note(wire(name), RRType.A)
  }
  for (const name of names) stage.put(name, RRType.A, rdata, 60, steering)
  return { stage, touch }
}

/** Returns how often other work ran until `work` ended. */
async function turnsOf(work: Promise<void>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = (): void => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work
  isOver = true
  return turns
}

t.test('names with many answers are signed one after the other, between other work', async (t) => {
  const { stage, touch } = createStage()
  t.ok((await turnsOf(stage.publish())) >= TURNS, 'new ones')
  const { made, reused } = stage.signer.state
  touch()
  t.ok((await turnsOf(stage.publish())) >= TURNS, 'unchanged ones')
  t.ok(stage.signer.state.made <= made + 2, 'all of their signatures are reused')
  t.ok(stage.signer.state.reused - reused < (NAMES + 1) * ANSWERS, 'each is planned once')
})

t.test('so are their signatures that are made before they expire', async (t) => {
  const { stage } = createStage()
  await stage.publish()
  stage.clock.pass(10 * 86_400_000)
  const batches = stage.batches
  const { made } = stage.signer.state
  const due = new Promise<void>((resolve) => stage.signer.onDue(resolve))
  const turns = turnsOf(due)
  await stage.timers.advance(60_000)
  t.ok((await turns) >= NAMES, 'other work runs')
  t.ok(stage.batches - batches >= NAMES, 'no message to the thread has all')
  await stage.publish()
  t.ok(stage.signer.state.made - made < ENDPOINTS, 'they are used')
})
