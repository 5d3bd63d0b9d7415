import assert from 'node:assert/strict'
import fc from 'fast-check'
import { TIMELINES } from '../../../src/signing/rolls/roll-state.ts'
import { RollWorld } from './roll-world.ts'

const HOUR = 3600
const DAY = 24 * HOUR

/** Something that happens after some time. */
export interface Act {
  readonly afterSeconds: number
  readonly kind: number
  readonly choice: number
}

/** Delays: any, or so short that each second counts. */
function arbitraryDelay(max: number): fc.Arbitrary<number> {
  return fc.oneof(fc.nat({ max }), fc.constantFrom(0, 0, 1, 2))
}

const arbitraryPolicy = fc.record({
  split: fc.boolean(),
  algorithm: fc.constantFrom(8, 13),
  dnskeyTtlSeconds: arbitraryDelay(DAY),
  zonePropagationSeconds: arbitraryDelay(2 * HOUR),
  parentPropagationSeconds: arbitraryDelay(2 * HOUR),
  parentDsTtlSeconds: arbitraryDelay(DAY),
  publishSafetySeconds: arbitraryDelay(HOUR),
  retireSafetySeconds: arbitraryDelay(HOUR),
  lifetimeSeconds: fc.record({
    csk: fc.constantFrom(Infinity, 20 * DAY),
    ksk: fc.constantFrom(Infinity, 15 * DAY),
    zsk: fc.constantFrom(Infinity, 6 * DAY),
  }),
})

const kind = fc.nat({ max: 18 })
const choice = fc.nat({ max: 7 })
const arbitraryActs: fc.Arbitrary<readonly Act[]> = fc.oneof(
  ...[
    fc.oneof(fc.nat({ max: HOUR }), fc.nat({ max: DAY }), fc.nat({ max: 4 * DAY })),
    fc.constantFrom(0, 0, 1, 1, 2, 3, HOUR + 1, 2 * DAY),
  ].map((afterSeconds) => {
    const act = fc.record({ afterSeconds, kind, choice })
    return fc.array(act, { minLength: 20, maxLength: 120 })
  }),
)

/** Something happens: to the server, to the zone, to the parent, to the clock, or a user wants something. */
function act(world: RollWorld, { kind, choice }: Act): void {
  const layout = { split: choice % 2 === 0, algorithm: [8, 13, 15, 14][choice >> 1]! }
  const { keys, ds } = world.state
  switch (kind) {
    case 0:
      world.request({ kind: 'roll', role: (['csk', 'ksk', 'zsk'] as const)[choice % 3]! })
      break
    case 1:
      world.request({ kind: 'layout', layout })
      break
    case 2:
      world.request({ kind: 'retire', id: keys[choice % keys.length]!.id })
      break
    case 3:
      world.request({ kind: 'delegation', isSigned: choice > 1 })
      break
    case 4:
      world.policy = { ...world.policy, ...layout }
      break
    case 5:
      world.lateSeconds += choice * 5000
      break
    case 6:
      world.zoneTtlSeconds = choice * 5 * HOUR
      break
    case 7:
      world.addKey(layout.algorithm, layout.split ? 256 : 257)
      break
    case 8:
      // The user says so, wrongly or rightly.
      if (world.parentKeys.join() === ds.keys.join())
        world.request({ kind: 'published', ids: ds.keys })
      break
    case 9:
    case 10:
    case 11:
      world.poll()
      break
    case 12:
    case 13:
      world.followCds(choice)
      break
    case 14:
      // By mistake, the zone is insecure for some time.
      if (choice === 0) world.setParent([])
      else world.followCds()
      break
    default:
      world.publish()
  }
}

/** Throws if a combination of cached sets does not validate. */
function look(world: RollWorld): void {
  const [bogus] = world.bogus()
  if (bogus !== undefined) throw new Error(bogus)
}

/** Lets acts happen to a new zone. @throws Error as soon as a combination of cached sets does not validate. */
export function replay(world: RollWorld, acts: readonly Act[]): void {
  world.plan()
  for (const one of acts) {
    // Caches lose their content while time passes, so both ends are looked at.
    look(world)
    world.seconds += one.afterSeconds
    world.plan()
    act(world, one)
    look(world)
    world.plan()
  }
}

/** Lets 60 days pass with a parent and a server that do their part: all rolls end. */
function finish(world: RollWorld): void {
  const lifetimeSeconds = { csk: Infinity, ksk: Infinity, zsk: Infinity }
  world.policy = { ...world.policy, lifetimeSeconds }
  for (let day = 0; day < 60; day++, world.seconds += DAY) {
    world.plan()
    world.publish()
    world.followCds()
    world.poll()
    look(world)
  }
}

/** Whatever happens, each combination of cached sets validates, and all rolls end. */
export const rollsAreSafe = fc.property(arbitraryPolicy, arbitraryActs, (policy, acts) => {
  const world = new RollWorld(policy)
  replay(world, acts)
  finish(world)
  const { state } = world
  assert.deepEqual(state.requests, [])
  for (const name of TIMELINES) {
    assert.deepEqual(state[name].older, [], name)
    assert.ok(state[name].isKnown, name)
  }
  const { split, algorithm } = state.wanted
  const roles = split ? ['ksk', 'zsk'] : ['csk']
  assert.deepEqual(new Set(state.keys.map(({ role }) => role)), new Set(roles))
  assert.ok(state.keys.every((key) => key.isWanted && key.algorithm === algorithm))
  assert.equal(state.ds.keys.length > 0, state.isSigned)
  assert.equal(new Set(world.removed).size, world.removed.length, 'a key is retired twice')
})
