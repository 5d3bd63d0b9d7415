import fc from 'fast-check'
import t from 'tap'
import type { RollPolicy } from '../../../src/signing/rolls/policy.ts'
import type { RollRequest } from '../../../src/signing/rolls/roll-state.ts'
import { phaseOf } from '../../../src/signing/rolls/timeline.ts'
import { runs } from '../../support/runs.ts'
import { replay, rollsAreSafe } from './roll-acts.ts'
import { RollWorld, timelineOf } from './roll-world.ts'

const HOUR = 3600
const DAY = 24 * HOUR
const NO_WAITS = {
  dnskeyTtlSeconds: 0,
  zonePropagationSeconds: 0,
  parentPropagationSeconds: 0,
  parentDsTtlSeconds: 0,
  publishSafetySeconds: 0,
  retireSafetySeconds: 0,
}

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

/** Acts that made a zone bogus once: [seconds before it, kind, choice]. */
t.test('every combination of cached sets validates, in special cases', async (t) => {
  const table: readonly (readonly [string, Partial<RollPolicy>, readonly (readonly number[])[]])[] =
    [
      [
        'the parent follows an old CDS after a user has confirmed the DS',
        NO_WAITS,
        [
          [0, 15, 0], // publish
          [3601, 15, 0], // publish, with CDS
          [0, 3, 0], // ask the parent to remove the DS
          [0, 0, 0], // roll the CSK
          [0, 8, 0], // confirm that the parent has no DS
          [0, 12, 0], // the parent follows the CDS of the server
          [0, 15, 0], // publish
          [2, 0, 0],
          [2, 15, 0],
        ],
      ],
    ]
  for (const [what, policy, acts] of table) {
    const world = new RollWorld(policy)
    const act = ([afterSeconds, kind, choice]: readonly number[]) => {
      return { afterSeconds: afterSeconds!, kind: kind!, choice: choice! }
    }
    t.doesNotThrow(() => replay(world, acts.map(act)), what)
  }
})

t.test('every combination of cached sets validates, whatever happens', async () => {
  fc.assert(rollsAreSafe, { numRuns: runs(300) })
})
