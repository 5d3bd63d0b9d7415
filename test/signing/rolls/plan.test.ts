import fc from 'fast-check'
import t from 'tap'
import type { RollPolicy } from '../../../src/signing/rolls/policy.ts'
import type { RollRequest } from '../../../src/signing/rolls/roll-state.ts'
import { phaseOf } from '../../../src/signing/rolls/timeline.ts'
import { runs } from '../../support/runs.ts'
import { RollWorld, timelineOf } from './roll-world.ts'

const HOUR = 3600
const DAY = 24 * HOUR

/** A zone that is signed, and whose parent has its DS. */
function signed(policy: Partial<RollPolicy> = {}): RollWorld {
  const world = new RollWorld(policy)
  timelineOf(world, 100)
  return world
}

/**
 * Steps with the hour when they happen. The world moves every half hour. A DNSKEY waits 2.1 hours, signatures as well,
 * a DS 26.1 hours.
 */
t.test('the steps of each roll', async (t) => {
  const table: readonly {
    readonly what: string
    readonly world: RollWorld
    readonly request?: RollRequest
    readonly steps: readonly string[]
  }[] = [
    {
      what: 'first keys',
      world: new RollWorld(),
      steps: [
        '0 use CSK 1',
        '0 sign with CSK 1',
        '0 publish the DNSKEY of CSK 1',
        '2.5 ask the parent for the DS of CSK 1',
      ],
    },
    {
      what: 'CSK',
      world: signed(),
      request: { kind: 'roll', role: 'csk' },
      steps: [
        '0 roll CSK 1 as requested',
        '0 use CSK 2',
        '0 publish the DNSKEY of CSK 2',
        '2.5 sign with CSK 2 instead of CSK 1',
        '2.5 ask the parent for the DS of CSK 2',
        '29.5 ask the parent to remove the DS of CSK 1',
        '56.5 remove the DNSKEY of CSK 1',
        '59 CSK 1 is out of use',
      ],
    },
    {
      what: 'ZSK: pre-publish',
      world: signed({ split: true }),
      request: { kind: 'roll', role: 'zsk' },
      steps: [
        '0 roll ZSK 2 as requested',
        '0 use ZSK 3',
        '0 publish the DNSKEY of ZSK 3',
        '2.5 sign with ZSK 3 instead of ZSK 2',
        '5 remove the DNSKEY of ZSK 2',
        '7.5 ZSK 2 is out of use',
      ],
    },
    {
      what: 'KSK: double-DS',
      world: signed({ split: true }),
      request: { kind: 'roll', role: 'ksk' },
      steps: [
        '0 roll KSK 1 as requested',
        '0 use KSK 3',
        '0 publish the DNSKEY of KSK 3',
        '2.5 ask the parent for the DS of KSK 3',
        '29.5 ask the parent to remove the DS of KSK 1',
        '56.5 remove the DNSKEY of KSK 1',
        '59 KSK 1 is out of use',
      ],
    },
    {
      what: 'algorithm: signatures, DNSKEY, DS, and back',
      world: signed(),
      request: { kind: 'layout', layout: { split: false, algorithm: 15 } },
      steps: [
        '0 replace CSK 1 by CSK with ED25519',
        '0 use CSK 2',
        '0 sign with CSK 2',
        '2.5 publish the DNSKEY of CSK 2',
        '5 ask the parent for the DS of CSK 2',
        '32 ask the parent to remove the DS of CSK 1',
        '59 remove the DNSKEY of CSK 1',
        '61.5 stop signing with CSK 1',
        '64 CSK 1 is out of use',
      ],
    },
    {
      what: 'CSK to KSK and ZSK',
      world: signed(),
      request: { kind: 'layout', layout: { split: true, algorithm: 13 } },
      steps: [
        '0 replace CSK 1 by KSK and ZSK with ECDSAP256SHA256',
        '0 use KSK 2',
        '0 use ZSK 3',
        '0 publish the DNSKEY of KSK 2 and ZSK 3',
        '2.5 sign with ZSK 3 instead of CSK 1',
        '2.5 ask the parent for the DS of KSK 2',
        '29.5 ask the parent to remove the DS of CSK 1',
        '56.5 remove the DNSKEY of CSK 1',
        '59 CSK 1 is out of use',
      ],
    },
    {
      what: 'KSK and ZSK to CSK',
      world: signed({ split: true }),
      request: { kind: 'layout', layout: { split: false, algorithm: 13 } },
      steps: [
        '0 replace KSK 1 and ZSK 2 by CSK with ECDSAP256SHA256',
        '0 use CSK 3',
        '0 publish the DNSKEY of CSK 3',
        '2.5 sign with CSK 3 instead of ZSK 2',
        '2.5 ask the parent for the DS of CSK 3',
        '5 remove the DNSKEY of ZSK 2',
        '7.5 ZSK 2 is out of use',
        '29.5 ask the parent to remove the DS of KSK 1',
        '56.5 remove the DNSKEY of KSK 1',
        '59 KSK 1 is out of use',
      ],
    },
    {
      what: 'a key that is retired gets a successor',
      world: signed(),
      request: { kind: 'retire', id: 'Kexample.org.+013+00001' },
      steps: [
        '0 retire CSK 1 as requested',
        '0 use CSK 2',
        '0 publish the DNSKEY of CSK 2',
        '2.5 sign with CSK 2 instead of CSK 1',
        '2.5 ask the parent for the DS of CSK 2',
        '29.5 ask the parent to remove the DS of CSK 1',
        '56.5 remove the DNSKEY of CSK 1',
        '59 CSK 1 is out of use',
      ],
    },
    {
      what: 'no DS',
      world: signed(),
      request: { kind: 'delegation', isSigned: false },
      steps: ['0 ask the parent to remove the DS of CSK 1'],
    },
    {
      what: 'a role that the zone does not have',
      world: signed(),
      request: { kind: 'roll', role: 'zsk' },
      steps: ["0 ignore 'request roll zsk': the zone has no ZSK"],
    },
    {
      what: 'DS records that the parent should not have',
      world: signed(),
      request: { kind: 'published', ids: [] },
      steps: ["0 ignore 'request published -': the parent should have other DS records now"],
    },
  ]
  for (const { what, world, request, steps } of table) {
    if (request !== undefined) world.request(request)
    t.strictSame(timelineOf(world, 100), steps, what)
    t.strictSame(world.state.requests, [], what)
  }
})

t.test('keys that are in the store at the start', async (t) => {
  const world = new RollWorld()
  world.addKey(8, 257)
  world.addKey(8, 256)
  t.strictSame(timelineOf(world, 100), [
    '0 use KSK 1 and ZSK 2, found in the key store',
    '2.5 ask the parent for the DS of KSK 1',
  ])
  t.equal(world.store.length, 2, 'their layout is kept')
  world.policy = { ...world.policy, algorithm: 15 }
  t.match(
    timelineOf(world, 100),
    ['0 replace KSK 1 and ZSK 2 by CSK with ED25519'],
    'until it is configured',
  )
  t.strictSame(world.store, [{ id: 'Kexample.org.+015+00003', algorithm: 15, flags: 257 }])
  const spare = world.addKey(15, 257)
  world.request({ kind: 'roll', role: 'csk' })
  t.match(timelineOf(world, 100), ['0 roll CSK 3 as requested', '0 use CSK 4'])
  t.strictSame(
    world.store.map(({ id }) => id),
    [spare],
    'a key in the store is used before a new one',
  )
  const other = world.addKey(15, 257)
  world.request({ kind: 'retire', id: other })
  timelineOf(world, 1)
  t.equal(world.removed.at(-1), other, 'a key that is not used leaves at once')
})

t.test('keys are replaced at the end of their lifetime, again and again', async (t) => {
  const world = new RollWorld({
    split: true,
    lifetimeSeconds: { csk: Infinity, ksk: 30 * DAY, zsk: 10 * DAY },
  })
  const steps = timelineOf(world, 61 * 24)
  const count = (text: string) => steps.filter((step) => step.includes(text)).length
  t.equal(count('at the end of its lifetime'), 8)
  t.equal(count('roll KSK'), 2)
  t.ok(world.store.length <= 4)
})

t.test(
  'without a report that a version is served, or of the parent, nothing goes on',
  async (t) => {
    const world = signed({ split: true })
    world.request({ kind: 'roll', role: 'zsk' })
    world.plan()
    const id = world.state.keys.at(-1)!.id
    world.seconds += 100 * DAY
    world.plan()
    t.equal(phaseOf(world.state.dnskey, id), 'rumoured')
    world.publish()
    world.seconds += 2 * HOUR
    world.plan()
    t.equal(phaseOf(world.state.dnskey, id), 'rumoured')
    world.seconds += HOUR
    world.plan()
    t.equal(phaseOf(world.state.dnskey, id), 'omnipresent')
    t.equal(phaseOf(world.state.signers, id), 'rumoured')
    const manual = signed()
    manual.request({ kind: 'roll', role: 'csk' })
    for (let day = 0; day < 20; day++, manual.seconds += DAY) {
      manual.plan()
      manual.publish()
    }
    const { ds } = manual.state
    t.equal(ds.keys.length, 2)
    t.notOk(ds.isKnown)
    manual.followCds()
    manual.request({ kind: 'published', ids: ds.keys })
    manual.plan()
    t.ok(manual.state.ds.isKnown)
    manual.seconds += 2 * DAY
    manual.plan()
    t.equal(manual.state.ds.keys.length, 1)
  },
)

t.test('a DS that disappears from the parent stops a roll, which goes on with it', async (t) => {
  const world = signed()
  world.setParent([])
  world.poll()
  world.request({ kind: 'roll', role: 'csk' })
  for (let hour = 0; hour < 200; hour++, world.seconds += HOUR) {
    world.plan()
    world.publish()
  }
  t.equal(world.state.ds.keys.length, 2)
  world.steps.splice(0)
  t.match(timelineOf(world, 100), ['26.5 ask the parent to remove the DS of CSK 1'])
})

interface Act {
  readonly afterSeconds: number
  readonly kind: number
  readonly choice: number
}

const arbitraryPolicy = fc.record({
  split: fc.boolean(),
  algorithm: fc.constantFrom(8, 13),
  dnskeyTtlSeconds: fc.nat({ max: DAY }),
  zonePropagationSeconds: fc.nat({ max: 2 * HOUR }),
  parentPropagationSeconds: fc.nat({ max: 2 * HOUR }),
  parentDsTtlSeconds: fc.nat({ max: DAY }),
  publishSafetySeconds: fc.nat({ max: HOUR }),
  retireSafetySeconds: fc.nat({ max: HOUR }),
  lifetimeSeconds: fc.record({
    csk: fc.constantFrom(Infinity, 20 * DAY),
    ksk: fc.constantFrom(Infinity, 15 * DAY),
    zsk: fc.constantFrom(Infinity, 6 * DAY),
  }),
})

const arbitraryAct: fc.Arbitrary<Act> = fc.record({
  afterSeconds: fc.oneof(fc.nat({ max: HOUR }), fc.nat({ max: DAY }), fc.nat({ max: 4 * DAY })),
  kind: fc.nat({ max: 18 }),
  choice: fc.nat({ max: 7 }),
})

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

t.test('every combination of cached sets validates, whatever happens', async (t) => {
  fc.assert(
    fc.property(
      arbitraryPolicy,
      fc.array(arbitraryAct, { minLength: 20, maxLength: 120 }),
      (policy, acts) => {
        const world = new RollWorld(policy)
        world.plan()
        const look = (): void => {
          const [bogus] = world.bogus()
          if (bogus !== undefined) throw new Error(bogus)
        }
        for (const one of acts) {
          // Caches lose their content while time passes, so both ends are looked at.
          look()
          world.seconds += one.afterSeconds
          world.plan()
          act(world, one)
          look()
          world.plan()
        }
        // With a parent and a server that do their part, all rolls end.
        world.policy = {
          ...world.policy,
          lifetimeSeconds: { csk: Infinity, ksk: Infinity, zsk: Infinity },
        }
        for (let day = 0; day < 60; day++, world.seconds += DAY) {
          world.plan()
          world.publish()
          world.followCds()
          world.poll()
          look()
        }
        const { state } = world
        t.strictSame(state.requests, [])
        for (const name of ['dnskey', 'signers', 'ds'] as const) {
          t.strictSame(state[name].older, [], name)
          t.ok(state[name].isKnown, name)
        }
        const { split, algorithm } = state.wanted
        const roles = split ? ['ksk', 'zsk'] : ['csk']
        t.strictSame(new Set(state.keys.map(({ role }) => role)), new Set(roles))
        t.ok(state.keys.every((key) => key.isWanted && key.algorithm === algorithm))
        t.equal(state.ds.keys.length > 0, state.isSigned)
        t.equal(new Set(world.removed).size, world.removed.length, 'no key is retired twice')
      },
    ),
    { numRuns: runs(300) },
  )
})
