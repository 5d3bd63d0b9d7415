import fc from 'fast-check'
import t from 'tap'
import { InputError } from '../../../src/base/errors.ts'
import { RRType } from '../../../src/dns/iana/types.ts'
import { compareNames, printName } from '../../../src/dns/name/name.ts'
import { printRdata } from '../../../src/dns/rdata/index.ts'
import { keyOwner } from '../../../src/signing/zone/canonical-key.ts'
import { ZoneSigner } from '../../../src/signing/zone/zone-signer.ts'
import { ZoneView } from '../../../src/signing/zone/zone-view.ts'
import { DEFAULT_SIGNING, type SigningPolicy } from '../../../src/signing/zone-keys.ts'
import { encodeSteering, NO_POLICY } from '../../../src/steering/encode.ts'
import { ZoneImage } from '../../../src/zone/image/writer.ts'
import { runs } from '../../support/runs.ts'
import { FakeClock, FakeTimers } from '../../support/setup.ts'
import type { OwnedRRset } from '../../support/zone-contents.ts'
import { wire } from '../../support/zone-text.ts'
import { faultsOfSignatures, nsec3Of, nsecOf } from './reference.ts'
import { APEX, linesOf, SigningStage, TestKeys } from './signing-stage.ts'

const NS = [wire('ns.other.')]
const A = (last: number) => [Uint8Array.from([192, 0, 2, last])]
const DS = [Uint8Array.from([1, 2, 13, 2, ...Array.from({ length: 32 }, (_, i) => i)])]

const label = fc.constantFrom('a', 'b', '*', 'z', 'a-b', '\\000', '\\255')
const owner = fc
  .array(label, { maxLength: 3 })
  .map((labels) => `${labels.map((text) => `${text}.`).join('')}example.`)
const outcome = fc.record({
  weight: fc.constant(1),
  ttlSeconds: fc.constantFrom(30, 60),
  rdataIndexes: fc.subarray([0, 1, 2]),
})
const tier = fc.array(outcome, { minLength: 1, maxLength: 3 })
const steering = fc
  .tuple(fc.array(tier, { minLength: 1, maxLength: 2 }), fc.constantFrom(1, 2))
  .map(([tiers, answers]) => encodeSteering(NO_POLICY, tiers, { answers }))
const edit = fc.record({
  steering: fc.option(steering, { nil: undefined }),
  owner,
  type: fc.constantFrom(RRType.A, RRType.A, RRType.TXT, RRType.NS, RRType.DS, RRType.DNAME),
  isRemoved: fc.boolean(),
  last: fc.integer({ min: 1, max: 3 }),
})
type Edit = typeof edit extends fc.Arbitrary<infer T> ? T : never

function rdataOf({ type, last }: Edit): Uint8Array[] {
  if (type === RRType.A) return [...A(last), ...A(10 + last), ...A(20 + last)]
  if (type === RRType.TXT) return [Uint8Array.from([1, 0x60 + last])]
  return type === RRType.DS ? DS : NS
}

function apply(stage: SigningStage, edit: Edit): void {
  const isApex = edit.owner === 'example.'
  if (isApex && edit.type !== RRType.A) return
  if (edit.isRemoved) stage.remove(edit.owner, edit.type)
  else {
    const steering = edit.type === RRType.A && !isApex ? edit.steering : undefined
    stage.put(edit.owner, edit.type, rdataOf(edit), 300 * edit.last, steering)
  }
}

function recordsOf(contents: readonly OwnedRRset[], type: number): string[] {
  return contents
    .filter((set) => set.type === type)
    .flatMap(({ owner, rdata }) =>
      rdata.map((one) => `${printName(owner)} ${printRdata(type, one)}`),
    )
    .sort()
}

/** Owners of a type in canonical order. */
function ownersOf(contents: readonly OwnedRRset[], type: number): string[] {
  const owners = contents.filter((set) => set.type === type).map((set) => set.owner)
  return owners.sort(compareNames).map((name) => printName(name))
}

/** Owners of the chain in the image. */
function chainOf({ image }: SigningStage, type: number): string[] {
  const chain = ZoneView.open(image.handle, APEX, image.version)!.chain(type)
  const owners: string[] = []
  for (let key = chain.first(); key !== undefined; key = chain.next()) {
    owners.push(printName(keyOwner(key, APEX)))
  }
  return owners
}

const POLICIES: readonly Partial<SigningPolicy>[] = [
  { denial: 'nsec' },
  { denial: 'nsec3' },
  { denial: 'nsec3', optOut: true },
  { denial: 'compact' },
]

t.test('an empty non-terminal that loses its last name has no proof', async (t) => {
  for (const policy of POLICIES) {
    for (const isWhole of [false, true]) {
      const stages = [new SigningStage(policy), new SigningStage(policy)]
      for (const stage of stages) stage.put('example.', RRType.NS, NS)
      const [stage, fresh] = stages as [SigningStage, SigningStage]
      stage.put('c.b.a.example.', RRType.A, A(1))
      stage.put('b.a.example.', RRType.A, A(1))
      await stage.publish()
      stage.remove('c.b.a.example.', RRType.A)
      stage.remove('b.a.example.', RRType.A)
      if (isWhole) stage.signer.noteAll()
      await stage.publish()
      fresh.serial = stage.serial - 1
      await fresh.publish()
      const name = `${JSON.stringify(policy)}, all names: ${isWhole}`
      t.same(linesOf(stage.contents()), linesOf(fresh.contents()), name)
    }
  }
})

for (const policy of POLICIES) {
  const name = `${policy.denial}${policy.optOut === true ? ' with opt-out' : ''}`
  t.test(`after any edits, a zone with ${name} is signed as from nothing`, async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(edit, { maxLength: 5 }), { minLength: 1, maxLength: 4 }),
        async (rounds) => {
          const stage = new SigningStage(policy)
          stage.put('example.', RRType.NS, NS)
          for (const edits of rounds) {
            for (const one of edits) apply(stage, one)
            await stage.publish()
          }
          const contents = stage.contents()
          const isHashed = policy.denial === 'nsec3'
          const none = policy.denial === 'compact'
          const nsec = isHashed || none ? [] : nsecOf(contents)
          const nsec3 = isHashed ? nsec3Of(contents, policy.optOut === true) : []
          t.same(recordsOf(contents, RRType.NSEC), nsec.sort())
          t.same(recordsOf(contents, RRType.NSEC3), nsec3.sort())
          t.same(faultsOfSignatures(contents), [])
          const type = isHashed ? RRType.NSEC3 : RRType.NSEC
          t.same(chainOf(stage, type), none ? [] : ownersOf(contents, type))
          const fresh = new SigningStage(policy)
          fresh.serial = stage.serial - 1
          fresh.put('example.', RRType.NS, NS)
          for (const one of rounds.flat()) apply(fresh, one)
          await fresh.publish()
          t.same(linesOf(contents), linesOf(fresh.contents()))
        },
      ),
      { numRuns: runs(100) },
    )
  })
}

t.test('a zone whose name is too long for NSEC3 is refused', async (t) => {
  const label = Buffer.concat([Buffer.from([63]), Buffer.alloc(63, 0x61)])
  for (const [denial, last, message] of [
    ['nsec3', 28, ''],
    ['nsec3', 29, 'too long for NSEC3; use `denial nsec`'],
    ['nsec', 61, ''],
  ] as const) {
    const rest = Buffer.concat([Buffer.from([last]), Buffer.alloc(last, 0x62), Buffer.of(0)])
    const apex = Buffer.concat([label, label, label, rest])
    const image = new ZoneImage()
    const signed = { keys: new TestKeys(), policy: { ...DEFAULT_SIGNING, denial } }
    const parts = { clock: new FakeClock(), timers: new FakeTimers() }
    const zone = image.addZone(apex)
    const signer = new ZoneSigner(image, zone, apex, signed, parts)
    const rdata = [Buffer.alloc(22)]
    image.putRRset(zone, apex, { type: RRType.SOA, ttlSeconds: 60, rdata })
    t.match(signer.refusal, message)
    if (message === '') t.equal(signer.sign(), undefined)
    else t.throws(() => signer.sign(), InputError)
  }
})

t.test('a name that is gone leaves the chain, also if all names are signed again', async (t) => {
  const stage = new SigningStage({ denial: 'nsec' })
  stage.put('example.', RRType.NS, NS)
  for (const owner of ['a.example.', 'b.example.']) stage.put(owner, RRType.A, A(1))
  await stage.publish()
  stage.remove('a.example.', RRType.A)
  stage.signer.noteAll()
  await stage.publish()
  t.strictSame(chainOf(stage, RRType.NSEC), ownersOf(stage.contents(), RRType.NSEC))
})

t.test('after a failure, nothing is put and nothing rejects any more', async (t) => {
  const rejected: unknown[] = []
  const note = (error: unknown): void => void rejected.push(error)
  process.on('unhandledRejection', note)
  t.teardown(() => process.off('unhandledRejection', note))
  for (const [name, failing] of Object.entries({ both: 2, first: 1 })) {
    const stage = new SigningStage()
    for (let i = 0; i < 600; i++) stage.put(`n${i}.example.`, RRType.A, A(1))
    stage.beforeBatch = async (batch) => {
      for (let turn = 0; turn < 4 * batch; turn++) await new Promise((next) => setImmediate(next))
      if (batch <= failing) throw new Error('broken')
    }
    await t.rejects(stage.publish(), { message: 'broken' }, name)
    const { length } = stage.changes
    for (let turn = 0; turn < 12; turn++) await new Promise((next) => setImmediate(next))
    t.equal(stage.changes.length, length, name)
    t.strictSame(rejected, [], name)
    stage.beforeBatch = async () => {}
    await stage.publish()
    t.ok(stage.contents().some(({ type }) => type === RRType.RRSIG))
  }
})
