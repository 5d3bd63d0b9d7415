import t from 'tap'
import { type NextStep, nextStep, waitForCaches } from '../../../src/signing/rolls/next-step.ts'
import type { TimelineName } from '../../../src/signing/rolls/roll-state.ts'
import { RollWorld, timelineOf } from './roll-world.ts'

const DAY = 86_400

function nextOf({ state, store, policy, nowSeconds }: RollWorld): NextStep | undefined {
  return nextStep(
    { usable: store, policy, nowSeconds },
    { state, steps: [], create: [], retire: [] },
  )
}

t.test('a wait for the parent comes before the end of a lifetime', async (t) => {
  const lifetimeSeconds = { csk: Infinity, ksk: Infinity, zsk: 90 * DAY }
  const world = new RollWorld({ split: true, lifetimeSeconds })
  timelineOf(world, 100)
  const start = world.state.keys.find(({ role }) => role === 'zsk')!.sinceSeconds
  const atSeconds = start + 90 * DAY
  t.strictSame(nextOf(world), { atSeconds, text: 'roll ZSK 2 at the end of its lifetime' })
  world.request({ kind: 'roll', role: 'ksk' })
  for (let hour = 0; hour < 10; hour++, world.seconds += 3600) {
    world.plan()
    world.publish()
  }
  const wait = 'wait until the parent has the DS of KSK 1 and KSK 3 alone'
  t.strictSame(nextOf(world), {
    atSeconds,
    text: `${wait}; roll ZSK 2 at the end of its lifetime`,
  })
  world.followCds()
  world.poll()
  t.match(nextOf(world), { text: 'ask the parent to remove the DS of KSK 1' }, 'it has it')
  const forever = new RollWorld({ lifetimeSeconds: { ...lifetimeSeconds, zsk: Infinity } })
  timelineOf(forever, 100)
  t.equal(nextOf(forever), undefined, 'nothing is due, ever')
})

t.test('a wait for caches that no step follows', async (t) => {
  const world = new RollWorld()
  timelineOf(world, 100)
  const { state } = world
  const now = 1000
  for (const [ends, atSeconds, text] of [
    [{}, undefined, undefined],
    [{ ds: now }, undefined, undefined],
    [{ ds: Infinity }, undefined, undefined],
    [{ ds: now + 1 }, now + 1, 'wait until no cache has older answers for DS'],
    [{ ds: Infinity, signers: now + 1 }, now + 1, 'wait until no cache has older signatures'],
    [
      { dnskey: now + 1, ds: now + 2 },
      now + 2,
      'wait until no cache has older answers for DNSKEY or answers for DS',
    ],
  ] as const) {
    const timelines = Object.entries(ends).map(([name, untilSeconds]) => {
      const older = [{ keys: [], sinceSeconds: 0, untilSeconds }]
      return [name, { ...state[name as TimelineName], older }]
    })
    const found = waitForCaches({ ...state, ...Object.fromEntries(timelines) }, now)
    t.strictSame(found, text === undefined ? undefined : { atSeconds, text })
  }
})
