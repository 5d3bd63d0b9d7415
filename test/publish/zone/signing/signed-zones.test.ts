import fc from 'fast-check'
import t from 'tap'
import type { SigningKey } from '../../../../src/dns/dnssec/dnskey.ts'
import { printType, RRType } from '../../../../src/dns/iana/types.ts'
import { nameKey } from '../../../../src/dns/name/name.ts'
import { DEFAULT_SIGNING } from '../../../../src/signing/zone-keys.ts'
import { CLIENTS } from '../../../steering/stage.ts'
import { runs } from '../../../support/runs.ts'
import { until } from '../../../support/until.ts'
import { listRRsets } from '../../../support/zone-contents.ts'
import { wire } from '../../../support/zone-names.ts'
import { APEX, type Given } from '../../record-zone-stage.ts'
import { keysOf, leftSeconds, newCsk, type Process, SignedStage, TestKeys } from './stage.ts'

const [KEY, NEXT_KEY] = [await newCsk(), await newCsk()]
/** Transfers always have it. */
const SOA_KEY = ` ${RRType.SOA}`
const DAY_MS = 86_400_000
const CLOSED = { allDown: 'closed', sticky: undefined, answers: undefined } as const

/** Names that records may have, and names that answers are asked of. */
const OWNERS = ['a', 'b', '*.w', 'a.b', 'x.y.z', '*'].map((label) => `${label}.k.example.com`)
const ASKED = [...OWNERS, 'c.b.k.example.com', 'v.w.k.example.com', 'y.z.k.example.com']
const NAMES = [...ASKED, 'k.example.com', 'ns1.k.example.com', 'zz.a.k.example.com']
const TYPES = [RRType.A, RRType.TXT, RRType.CNAME, RRType.SOA, RRType.NSEC, RRType.DNSKEY]
const CODES = ['GEO-NA', 'US', 'US-CA', '*'] as const

/** All answers that a validator rejects. */
function faultsOf(stage: SignedStage): string[] {
  const faults = NAMES.flatMap((text) =>
    TYPES.flatMap((type) =>
      Object.values(CLIENTS).flatMap((from) =>
        stage
          .faultsOf(wire(`${text}.`), type, from)
          .map((fault) => `${text} ${printType(type)} from ${from}: ${fault}`),
      ),
    ),
  )
  return [...new Set(faults)]
}

/** The RRsets of the zone by owner and type, each as text. */
function contentsOf({ image }: SignedStage): Map<string, string> {
  const zone = image.findZone(APEX)
  if (zone === undefined) return new Map()
  const sets = [...listRRsets(image.reader(), zone)]
  return new Map(
    sets.map(({ owner, type, ttlSeconds, rdata }) => [
      `${nameKey(owner)} ${type}`,
      `${ttlSeconds} ${rdata.map((one) => Buffer.from(one).toString('hex'))}`,
    ]),
  )
}

const arbitraryEndpoint = fc.record({
  last: fc.integer({ min: 1, max: 5 }),
  weight: fc.option(fc.constantFrom(0, 50, 100)),
  code: fc.option(fc.constantFrom(...CODES)),
})

const arbitraryRecord = fc
  .record({
    name: fc.constantFrom('r0', 'r1', 'r2', 'r3'),
    owner: fc.constantFrom(...OWNERS),
    kind: fc.constantFrom('A', 'A', 'TXT', 'CNAME'),
    target: fc.constantFrom(...ASKED.filter((name) => !name.includes('*')), 'www.example.org'),
    endpoints: fc.array(arbitraryEndpoint, { minLength: 1, maxLength: 4 }),
    answers: fc.option(fc.constantFrom('1', '2')),
  })
  .map(({ name, owner, kind, target, endpoints, answers }): Given => {
    const texts = endpoints.map(({ last, weight, code }, i) => {
      const targets = { A: `192.0.2.${last}`, TXT: `text${last}`, CNAME: target }
      const options = [`id=e${i}`, weight === null ? '' : `weight=${weight}`]
      if (code !== null) options.push(`geo=${code}`)
      const text = `${owner} ${kind} ${targets[kind as 'A']} ${options.join(' ')}`
      return text.replaceAll(/ +/g, ' ').trim()
    })
    return {
      name,
      rootHost: owner,
      endpoints: texts,
      annotations: answers === null ? {} : { 'sextant.io/answers': answers },
    }
  })

const arbitraryStep = fc.oneof(
  { weight: 6, arbitrary: arbitraryRecord.map((given) => ({ kind: 'put', given }) as const) },
  fc.constantFrom('r0', 'r1', 'r2').map((name) => ({ kind: 'remove', name }) as const),
  fc
    .record({
      name: fc.constantFrom('r0', 'r1', 'r2', 'r3'),
      down: fc.subarray([1, 2, 3, 4, 5].map((last) => `192.0.2.${last}`)),
    })
    .map((down) => ({ kind: 'down', ...down }) as const),
  fc.constantFrom('prepare', 'roll', 'refresh').map((kind) => ({ kind }) as const),
  { weight: 2, arbitrary: fc.constant({ kind: 'break' } as const) },
)
type Step = typeof arbitraryStep extends fc.Arbitrary<infer T> ? T : never

/** A key that fails to sign, and counts it. */
function breakKey(): { key: SigningKey; tries: () => number } {
  let tries = 0
  const key = Object.defineProperty({ ...NEXT_KEY }, 'privateKey', {
    get() {
      tries++
      throw new Error('broken')
    },
  })
  return { key, tries: () => tries }
}

async function take(stage: SignedStage, step: Step): Promise<void> {
  const { keys, clock, timers } = stage
  // So that the change is tried at once, and taken back.
  if (isBroken(stage)) clock.pass(60_000)
  if (step.kind === 'put') stage.put(step.given)
  else if (step.kind === 'remove') stage.remove(step.name)
  else if (step.kind === 'down') stage.setDown(step.name, step.down)
  else if (step.kind === 'prepare') keys.change(keysOf([KEY], [NEXT_KEY]))
  else if (step.kind === 'roll') keys.change(keysOf([NEXT_KEY], [KEY]))
  else if (step.kind === 'break') keys.change(keysOf([breakKey().key], [KEY]))
  else if (!isBroken(stage)) clock.pass(4 * DAY_MS)
  await timers.advance(2000)
  if (isBroken(stage)) return
  await mend(stage)
  if (step.kind !== 'refresh') return
  await until(async () => {
    await timers.advance(1000)
    return leftSeconds(stage) >= DEFAULT_SIGNING.refreshSeconds
  }, 'new signatures')
}

function isBroken({ keys }: SignedStage): boolean {
  const signers = keys.keys?.zoneSigners ?? []
  return signers.some((key) => key !== KEY && key !== NEXT_KEY)
}

/** Waits until the zone is signed again after a failure. */
async function mend({ clock, timers, zones }: SignedStage): Promise<void> {
  await until(async () => {
    if (zones.zones[0]!.signatures!.fault === '') return true
    clock.pass(1000)
    await timers.advance(1000)
    return false
  }, 'a signed zone')
}

/** Contents that do not depend on the history of the zone. */
function recordsOf(stage: SignedStage): [string, string][] {
  const made = [RRType.SOA, RRType.RRSIG, RRType.DNSKEY, RRType.CDS, RRType.CDNSKEY]
  return [...contentsOf(stage)]
    .filter(([key]) => !made.some((type) => key.endsWith(` ${type}`)))
    .toSorted()
}

t.test('every answer validates, whatever changes, and transfers get every change', async (t) => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(arbitraryRecord, { maxLength: 4 }),
      fc.array(arbitraryStep, { minLength: 1, maxLength: 6 }),
      async (givens, steps) => {
        const keys = new TestKeys(keysOf([KEY]))
        const stage = await SignedStage.open({ keys, settings: CLOSED }, givens)
        t.strictSame(faultsOf(stage), [], 'after the start')
        for (const step of steps) {
          const before = contentsOf(stage)
          const { serial } = stage
          stage.versions.length = 0
          await take(stage, step)
          t.strictSame(faultsOf(stage), [], `after ${JSON.stringify(step)}`)
          const after = contentsOf(stage)
          const differing = [...new Set([...before.keys(), ...after.keys()])].filter(
            (key) => before.get(key) !== after.get(key) && !key.endsWith(SOA_KEY),
          )
          const noted = stage.versions.flatMap(({ changed = [] }) =>
            changed.map(({ owner, type }) => `${nameKey(owner)} ${type}`),
          )
          const isWhole = stage.versions.some(({ changed }) => changed === undefined)
          const missing = isWhole ? [] : differing.filter((key) => !noted.includes(key))
          t.strictSame(missing, [], 'changes that transfers lack')
          t.equal(stage.serial > serial, differing.length > 0, 'a new version has a new serial')
          t.ok(stage.image.isPublished)
        }
        if (isBroken(stage)) keys.change(keysOf([KEY]))
        await mend(stage)
        const afresh = await SignedStage.open(
          { keys: new TestKeys(keysOf([KEY])), settings: CLOSED, health: stage.health },
          stage.givens.values(),
        )
        t.strictSame(recordsOf(stage), recordsOf(afresh), 'as of one load')
        afresh.stop()
        stage.stop()
        return t.passing()
      },
    ),
    { numRuns: runs(80) },
  )
})

const GEO: Given = {
  name: 'geo',
  endpoints: [
    'a.k.example.com A 192.0.2.1 id=1 weight=100 geo=US default=true',
    'a.k.example.com A 192.0.2.2 id=2 weight=50 geo=US',
    'a.k.example.com A 192.0.2.3 id=3 geo=GEO-NA weight=1',
    '*.w.k.example.com A 192.0.2.4',
    'b.k.example.com CNAME v.w.k.example.com',
  ],
}

/** What a process of this stage leaves behind. */
function leave(stage: SignedStage): Process {
  const { keys, image, table, zones, serials, clock } = stage
  stage.stop()
  return { keys, table, serials, clock, image: image.copy(), earlier: zones.facts }
}

t.test(
  'after a restart with a key that fails, the last signed version is served until it is mended',
  async (t) => {
    const records = fc.array(arbitraryRecord, { maxLength: 4 })
    await fc.assert(
      fc.asyncProperty(records, records, arbitraryStep, async (before, after, step) => {
        const first = await SignedStage.open(
          { keys: new TestKeys(keysOf([KEY])), settings: CLOSED },
          before,
        )
        const contents = contentsOf(first)
        const left = leave(first)
        left.keys.keys = keysOf([breakKey().key], [KEY])
        const second = await SignedStage.open({ ...left, settings: CLOSED }, after)
        t.strictSame(contentsOf(second), contents)
        t.strictSame(second.zones.facts, left.earlier)
        t.ok(second.image.isPublished)
        if (step.kind === 'put' || step.kind === 'remove' || step.kind === 'down')
          await take(second, step)
        t.strictSame(contentsOf(second), contents)
        t.strictSame(faultsOf(second), [])
        second.keys.change(keysOf([KEY]))
        await mend(second)
        t.strictSame(faultsOf(second), [])
        const afresh = await SignedStage.open(
          { keys: new TestKeys(keysOf([KEY])), settings: CLOSED, health: second.health },
          second.givens.values(),
        )
        t.strictSame(recordsOf(second), recordsOf(afresh), 'as of one load')
        afresh.stop()
        second.stop()
        return t.passing()
      }),
      { numRuns: runs(60) },
    )
  },
)

t.test('a restart from a snapshot, or a reload, signs nothing', async (t) => {
  const first = await SignedStage.open({ keys: new TestKeys(keysOf([KEY])) }, [GEO])
  t.ok(first.made > 10, `made ${first.made}`)
  const before = contentsOf(first)
  const second = await SignedStage.open(leave(first), [GEO])
  t.equal(second.made, 0)
  t.equal(second.serial, first.serial)
  t.strictSame(contentsOf(second), before)
  t.strictSame(faultsOf(second), [])
})

t.test('another policy or key at a reload is a new version', async (t) => {
  for (const change of ['key', 'nsec3', 'nsec']) {
    const first = await SignedStage.open({ keys: new TestKeys(keysOf([KEY])) }, [GEO])
    const left = leave(first)
    if (change === 'key') left.keys.keys = keysOf([NEXT_KEY], [KEY])
    const policy = change === 'nsec3' ? ({ denial: 'nsec3' } as const) : {}
    const second = await SignedStage.open({ ...left, policy }, [GEO])
    t.equal(second.serial > first.serial, change !== 'nsec', change)
    if (change !== 'nsec3') t.strictSame(faultsOf(second), [], change)
    t.equal(
      [...contentsOf(second).keys()].some((key) => key.endsWith(` ${RRType.NSEC}`)),
      change !== 'nsec3',
    )
  }
})

t.test('a zone without keys is not served before it has some', async (t) => {
  const keys = new TestKeys(undefined)
  const stage = await SignedStage.open({ keys }, [GEO])
  t.equal(stage.image.findZone(APEX), undefined)
  t.match(stage.lines.join('\n'), /zone k\.example\.com\. can't be signed, so queries get SERVFAIL/)
  t.strictSame(stage.zones.facts, [])
  keys.change(keysOf([KEY]))
  await stage.timers.advance(2000)
  t.strictSame(faultsOf(stage), [])
  t.equal(stage.zones.facts.length, 1)
})

t.test('a zone whose keys are gone keeps its last signed version', async (t) => {
  const first = await SignedStage.open({ keys: new TestKeys(keysOf([KEY])) }, [GEO])
  const before = contentsOf(first)
  const left = leave(first)
  left.keys.keys = undefined
  const changed = { ...GEO, endpoints: ['c.k.example.com A 192.0.2.9'] }
  const second = await SignedStage.open(left, [changed])
  t.strictSame(contentsOf(second), before)
  t.strictSame(second.zones.facts, left.earlier, 'a snapshot has the old version')
  t.match(second.lines.join('\n'), /so its last signed version is served/)
  second.put({ ...changed, endpoints: ['d.k.example.com A 192.0.2.9'] })
  t.strictSame(contentsOf(second), before)
  second.keys.change(keysOf([KEY]))
  await second.timers.advance(2000)
  t.strictSame(faultsOf(second), [])
  const owners = [...contentsOf(second).keys()]
  t.ok(owners.some((key) => key === `${nameKey(wire('d.k.example.com.'))} 1`))
  t.notOk(owners.some((key) => key === `${nameKey(wire('a.k.example.com.'))} 1`))
  t.notOk(owners.some((key) => key === `${nameKey(wire('c.k.example.com.'))} 1`))
  t.ok(second.serial > first.serial)
})

t.test('with a clock that jumped, nothing is signed', async (t) => {
  const stage = await SignedStage.open({ keys: new TestKeys(keysOf([KEY])) }, [GEO])
  const before = contentsOf(stage)
  stage.clock.nowMs -= 40 * DAY_MS
  stage.put({ ...GEO, name: 'other', endpoints: ['c.k.example.com A 192.0.2.9'] })
  await stage.timers.advance(2000)
  t.strictSame(contentsOf(stage), before)
  t.match(stage.lines.join('\n'), /can't be signed/)
  stage.clock.nowMs += 40 * DAY_MS
  await stage.timers.advance(2000)
  t.strictSame(faultsOf(stage), [])
  t.ok(contentsOf(stage).size > before.size)
  t.match(stage.lines.at(-1), /can be signed again/)
})

t.test('what replies note of a set is no new version', async (t) => {
  const addresses = ['192.0.2.1', '192.0.2.2']
  for (const weight of ['', ' weight=1']) {
    const endpoints = addresses.map((one) => `a.k.example.com A ${one} id=${one}${weight}`)
    const stage = await SignedStage.open({ keys: new TestKeys(keysOf([KEY])) }, [{ endpoints }])
    const seen = () => [stage.serial, stage.made]
    const before = seen()
    for (const down of [addresses, [], addresses, []]) {
      stage.setDown('app', down)
      const faults = stage.faultsOf(wire('a.k.example.com.'), RRType.A, CLIENTS.nowhere)
      t.strictSame(faults, [], `${weight} ${down}`)
      const { response } = stage.ask(wire('a.k.example.com.'), RRType.A)
      t.equal(response.edeCode, down.length > 0 ? 0 : -1)
      t.strictSame(seen(), before)
    }
    stage.stop()
  }
})

t.test('a set with too many answers keeps its last good version', async (t) => {
  const endpoints = Array.from({ length: 64 }, (_, i) => {
    return `a.k.example.com A 192.0.2.${i + 1} id=e${i} weight=${i + 1}`
  })
  const stage = await SignedStage.open({ keys: new TestKeys(keysOf([KEY])) }, [GEO])
  const asked = () => stage.ask(wire('a.k.example.com.'), RRType.A).response.count
  t.ok(asked() > 0)
  stage.put({ ...GEO, endpoints, annotations: { 'sextant.io/answers': '4' } })
  t.ok(asked() > 0)
  t.match(stage.lines.at(-1), /a\.k\.example\.com\. A has more than 4096 possible answers/)
  t.strictSame(faultsOf(stage), [])
  const many = { ...GEO, endpoints, annotations: { 'sextant.io/answers': '4' } }
  const restarted = await SignedStage.open(leave(stage), [many])
  t.strictSame(faultsOf(restarted), [])
  t.ok(restarted.ask(wire('a.k.example.com.'), RRType.A).response.count > 0)
  restarted.put(GEO)
  t.strictSame(faultsOf(restarted), [])
})

t.test(
  'a name whose endpoints are all down is proved, also after an empty non-terminal',
  async (t) => {
    const keys = new TestKeys(keysOf([KEY]))
    const below = { name: 'r', endpoints: ['a.b.k.example.com A 192.0.2.1'] }
    const stage = await SignedStage.open({ keys, settings: CLOSED }, [below])
    stage.setDown('r', ['192.0.2.1'])
    t.strictSame(faultsOf(stage), [])
    stage.put({ name: 'r', endpoints: ['a.b.k.example.com TXT text'] })
    t.strictSame(faultsOf(stage), [])
    stage.put({ name: 'r', endpoints: ['b.k.example.com A 192.0.2.1'] })
    t.strictSame(faultsOf(stage), [])
  },
)

t.test('a signer that fails is tried again later each time', async (t) => {
  const keys = new TestKeys(keysOf([KEY]))
  const stage = await SignedStage.open({ keys }, [GEO])
  const { clock, timers, image, lines, zones } = stage
  const { key: broken, tries } = breakKey()
  keys.change(keysOf([broken], [KEY]))
  stage.put({ ...GEO, endpoints: ['c.b.k.example.com A 192.0.2.9'] })
  const pass = async (): Promise<void> => {
    clock.pass(1000)
    await timers.advance(1000)
  }
  for (let seconds = 0; seconds < 180; seconds++) await pass()
  t.ok(tries() > 4 && tries() < 14, `${tries()} tries`)
  t.strictSame(faultsOf(stage), [])
  t.ok(image.isPublished, 'what could not be signed was taken back')
  t.match(zones.zones[0]!.signatures!.report.fault, /broken/)
  const logged = lines.filter((line) => /can't be signed, so its last signed .*broken/.test(line))
  t.equal(logged.length, 1)
  keys.change(keysOf([NEXT_KEY], [KEY]))
  await until(async () => {
    await pass()
    return image.isPublished && zones.zones[0]!.signatures!.fault === ''
  }, 'the good key')
  t.strictSame(faultsOf(stage), [])
  t.equal(stage.ask(wire('c.b.k.example.com.'), RRType.A).response.count, 2)
})
