import fc from 'fast-check'
import t from 'tap'
import { scanName } from '../../../src/dns/name/name.ts'
import type { Publishing } from '../../../src/operator/plan/decide.ts'
import { composeOwn } from '../../../src/operator/plan/own.ts'
import { composeServed } from '../../../src/operator/plan/served-endpoints.ts'
import type { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { unpackRecord } from '../../../src/records/pack.ts'
import { printTarget } from '../../../src/records/print-endpoint.ts'
import { record, zone } from '../../publish/record-zone-stage.ts'
import { peerTextOf } from '../../support/peer-text.ts'
import { runs } from '../../support/runs.ts'
import { TestHealth } from '../../support/test-health.ts'

/*
 * Programs that know neither health nor settings get what a nameserver serves: peers of v1 in the zone kdrnt, and readers of
 * `spec.endpoints` of `merged-<name>`.
 */

const HOST = 'k.example.com'
const NAMES = [HOST, `a.${HOST}`, `b.${HOST}`] as const
const ADDRESSES = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '2001:db8::1', '2001:db8::2'] as const
const TYPES = new Set(['A', 'AAAA', 'CNAME'])

/** `name TYPE`: its targets, in order. */
type Form = Readonly<Record<string, readonly string[]>>

interface World {
  /** Targets of each name: addresses in endpoints of their own, or the name that it leads to. */
  readonly names: readonly (readonly (readonly string[])[] | string)[]
  readonly down: readonly string[]
}

const addresses = fc.uniqueArray(fc.constantFrom(...ADDRESSES), { minLength: 1, maxLength: 3 })
const ends = fc.array(addresses, { maxLength: 3 })
const world: fc.Arbitrary<World> = fc.record({
  names: fc.tuple(
    fc.oneof(ends, fc.constantFrom(NAMES[1], NAMES[2])),
    fc.oneof(ends, fc.constant(NAMES[2])),
    ends,
  ),
  down: fc.uniqueArray(fc.constantFrom(...ADDRESSES)),
})

function endpointsOf({ names }: World): string[] {
  return names.flatMap((targets, i) => {
    const name = NAMES[i]!
    if (typeof targets === 'string') return [`${name} CNAME ${targets} id=${i}`]
    return targets.flatMap((list, n) => {
      const [four, six] = [
        list.filter((a) => !a.includes(':')),
        list.filter((a) => a.includes(':')),
      ]
      return [
        ...(four.length === 0 ? [] : [`${name} A ${four} id=${i}-${n}`]),
        ...(six.length === 0 ? [] : [`${name} AAAA ${six} id=${i}-${n}`]),
      ]
    })
  })
}

function formOf(
  found: readonly {
    readonly name: string
    readonly type: string
    readonly targets: readonly string[]
  }[],
): Form {
  const form: Record<string, string[]> = {}
  for (const { name, type, targets } of found) {
    if (!TYPES.has(type)) continue
    const key = `${name.replace(/\.kdrnt$/, '')} ${type}`
    const all = targets.map((one) => one.replace(/\.kdrnt$/, ''))
    form[key] = [...new Set([...(form[key] ?? []), ...all])].sort()
  }
  return Object.fromEntries(Object.entries(form).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function formsOf(given: World): Readonly<Record<string, Form>> {
  const stored = record({ endpoints: endpointsOf(given) })
  const content = unpackRecord(stored.packed)
  const ofServer = (isLocalForm: boolean): Form => {
    const health = new TestHealth()
    health.put(stored.key, given.down)
    const apex = scanName(isLocalForm ? 'kdrnt.' : 'example.com.')!
    const { records, sink } = zone({ apex, isLocalForm }, health)
    records.apply([{ before: undefined, after: stored }])
    return formOf(
      [...sink.sets].map(([key, set]) => {
        const [name = '', type = ''] = key.split(' ')
        const targets = set.candidates.flatMap(({ rdataIndexes }) => rdataIndexes)
        return {
          name: name.replace(/\.$/, ''),
          type,
          targets: targets.map((at) => printTarget(set.type, set.rdata[at]!)),
        }
      }),
    )
  }
  const health = { down: given.down, up: [], probes: [] }
  const publishing = {
    record: { key: stored.key } as DnsRecordView,
    content,
    rootHost: HOST,
    zone: HOST,
  } as unknown as Publishing
  const own = composeOwn(publishing, {
    ...{ site: 'here', membership: undefined, health, isElsewhere: () => false },
    ...{ before: undefined, nowMs: 0 },
  })
  const local = own.composeLocal([]).map(({ dnsName, recordType, targets }) => ({
    name: dnsName as string,
    type: recordType as string,
    targets: targets as string[],
  }))
  const merged = composeServed(
    { record: { key: stored.key }, content: publishing.content, rootHost: HOST },
    {
      ...{ site: 'here', foreign: [], down: given.down, foreignDown: new Set<string>() },
      ...{ drain: undefined, timeMs: 0 },
    },
  )
  return {
    answers: ofServer(false),
    'v1 of a plain server': ofServer(true),
    'v1 of an operator': formOf(local),
    merged: formOf(
      merged
        .map(peerTextOf)
        .map(({ dnsName: name, recordType: type, targets }) => ({ name, type, targets })),
    ),
  }
}

t.test('programs that know no health get what a nameserver serves', async (t) => {
  const property = fc.property(world, (given) => {
    fc.pre(endpointsOf(given).length > 0)
    const { answers, ...older } = formsOf(given)
    for (const [what, form] of Object.entries(older)) {
      if (JSON.stringify(form) === JSON.stringify(answers)) continue
      throw new Error(`${what}: ${JSON.stringify(form)}, not ${JSON.stringify(answers)}`)
    }
  })
  fc.assert(property, { numRuns: runs(500) })
  t.pass()
})
