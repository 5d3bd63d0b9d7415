import { join } from 'node:path'
import t from 'tap'
import { Random } from '../../src/base/random.ts'
import { runWhatIf } from '../../src/cli/what-if.ts'
import type { MmdbValue } from '../support/mmdb.ts'
import { recordOutput } from '../support/recorded-output.ts'
import { runs } from '../support/runs.ts'
import {
  answersAt,
  type Change,
  changesOf,
  compare,
  entryOf,
  isPublic,
  locatorOf,
  manifest,
  NAMES,
  randomSide,
  type Side,
  type Sketch,
} from './what-if-stage.ts'

const SAMPLES = runs(4000)

t.test('shares agree with brute force over random addresses', async (t) => {
  const random = new Random(20)
  for (let round = 0; round < 6; round++) {
    const hasCnames = round % 2 === 1
    const hasLocations = round >= 4
    const before = randomSide(random, hasCnames, hasLocations)
    const edited = randomSide(random, hasCnames, hasLocations)
    const after = round < 2 || round === 4 ? { ...edited, networks: before.networks } : edited
    const changes = await changesOf(t, before, after)
    const [locateBefore, locateAfter] = [locatorOf(before), locatorOf(after)]
    for (const family of [1, 2]) {
      const differing = new Map(NAMES.map((name) => [name, 0]))
      for (let i = 0; i < SAMPLES; ) {
        const bytes = Uint8Array.from({ length: family === 1 ? 4 : 16 }, () => random.below(256))
        if (family === 2) bytes[0] = 0x20 | (bytes[0]! & 0x1f)
        if (family === 1 && !isPublic(bytes)) continue
        const [old, next] = [locateBefore(bytes, family), locateAfter(bytes, family)]
        if (family === 2 && old.country === '' && next.country === '') continue
        i++
        for (const name of NAMES) {
          const isSame =
            answersAt(before.sketches, name, old) === answersAt(after.sketches, name, next)
          if (!isSame) differing.set(name, differing.get(name)! + 1)
        }
      }
      for (const [name, count] of differing) {
        const found = changes.filter((change) => change.name === `${name}.k.example.com.`)
        const share = Math.max(0, ...found.map(({ ipv4, ipv6 }) => (family === 1 ? ipv4 : ipv6)))
        const bound = 4.5 * Math.sqrt((share * (1 - share)) / SAMPLES) + 0.002
        const sampled = count / SAMPLES
        t.ok(Math.abs(share - sampled) < bound, `${round} ${family} ${name}: ${share} ~ ${sampled}`)
      }
    }
  }
})

t.test('an edit of records is found as if both sides were built from nothing', async (t) => {
  const random = new Random(7)
  for (let round = 0; round < 5; round++) {
    const before = withWildcards(randomSide(random, true), random)
    const edited = withWildcards(randomSide(random, true), random)
    // Some names lose or keep their endpoints, others get new ones.
    const kept = before.sketches.filter(() => random.below(2) === 0)
    const taken = new Set(kept.map(({ name }) => name))
    const sketches = [...kept, ...edited.sketches.filter(({ name }) => !taken.has(name))]
    const after = { sketches, networks: before.networks }
    const incremental = await compare(t, before, after, ['-o', 'json'])
    const whole = ['-o', 'json', '--new-conf', '{DIR}/Corefile']
    t.same(byName(incremental.printed), byName((await compare(t, before, after, whole)).printed))
    t.strictSame(incremental.errors, [])
  }
})

function withWildcards({ sketches, networks }: Side, random: Random): Side {
  const target = `192.0.2.${1 + random.below(3)}`
  const more = ['*', 'deep.d', '*.d'].filter(() => random.below(2) === 0)
  const added = more.map((name) => ({ name, codes: [], target }))
  const lead = { name: 'lead', codes: [], target: ['x.d', 'missing', 'd', 'b'][random.below(4)]! }
  return { sketches: [...sketches, ...added, lead], networks }
}

function byName(printed: readonly string[]): unknown {
  const { names, changes } = JSON.parse(printed.join('\n'))
  const keyOf = ({ name, type }: Change): string => `${name} ${type}`
  return [names, changes.sort((a: Change, b: Change) => (keyOf(a) < keyOf(b) ? -1 : 1))]
}

const EUROPE: Record<string, MmdbValue> = {
  '81.0.0.0/8': entryOf(0),
  '2400::/6': entryOf(0),
  '2800::/6': entryOf(2),
}
const eu: Sketch = { name: 'one', codes: ['GEO-EU'], target: '192.0.2.1' }
const other: Sketch = { name: 'one', codes: ['*'], target: '192.0.2.9' }
const side = (...sketches: Sketch[]): Side => ({ sketches, networks: EUROPE })

t.test('an edit of one tier changes the clients of the tier', async (t) => {
  const [change, ...more] = await changesOf(
    t,
    side(eu, other),
    side({ ...eu, target: '192.0.2.7' }, other),
  )
  t.strictSame(more, [])
  t.match(change, {
    name: 'one.k.example.com.',
    type: 'A',
    kind: 'changed',
    ipv6: 0.5,
    share: 0.5,
    private4: 0,
    countries: [{ code: 'DE', ipv4: 1, ipv6: 1 }],
    continents: [{ code: 'GEO-EU', ipv4: 1, ipv6: 1 }],
    via: [],
    tiers: [{ clients: 'GEO-EU', before: '192.0.2.1 100 %', after: '192.0.2.7 100 %' }],
  })
})

t.test('what leaves the answers alone has no share', async (t) => {
  t.strictSame(await changesOf(t, side(eu, other), side(eu, other)), [])
  const weighted = (a: number, b: number) =>
    side({ ...eu, codes: [], weight: a }, { ...other, codes: [], weight: b })
  t.strictSame(await changesOf(t, weighted(1, 3), weighted(20, 60)), [])
  const [slower] = await changesOf(t, side(eu), side({ ...eu, ttl: 300 }))
  t.match(slower, { kind: 'changed', share: 0, ttl: { before: 60, after: 300 }, tiers: [] })
  // A code for clients that got the same answer before.
  const [added] = await changesOf(t, side(other), side(other, { ...other, codes: ['GEO-EU'] }))
  t.match(added, {
    kind: 'changed',
    share: 0,
    tiers: [{ clients: 'all clients' }, { clients: 'GEO-EU' }, { clients: 'other clients' }],
  })
})

t.test('another number of answers is a change of the clients that it concerns', async (t) => {
  const three = [1, 2, 3].map((weight) => {
    return { ...eu, codes: ['GEO-EU'], weight, target: `192.0.2.${weight}` }
  })
  const one = side(...three, other)
  const [change, ...more] = await changesOf(t, one, { ...one, answers: '2' })
  t.strictSame(more, [])
  const shares = '192.0.2.1 16.7 %, 192.0.2.2 33.3 %, 192.0.2.3 50 %'
  t.match(change, {
    kind: 'changed',
    tiers: [{ clients: 'GEO-EU', before: shares, after: `2 of ${shares}` }],
  })
  t.strictSame(await changesOf(t, one, { ...one, answers: '1' }), [])
  // The tier without weights has no more endpoints than that.
  t.strictSame(await changesOf(t, side(eu, other), { ...side(eu, other), answers: '2' }), [])
})

t.test('names that lead to a change count with their clients', async (t) => {
  const chain = (target: string): Side =>
    side(
      { name: 'host', codes: [], target: 'lb' },
      { name: 'lb', codes: ['GEO-EU'], target: 'one' },
      { name: 'lb', codes: ['*'], target: 'two' },
      { ...other, name: 'two' },
      { ...eu, codes: [], target },
      { name: 'loop', codes: [], target: 'loop2' },
      { name: 'loop2', codes: [], target: 'loop' },
    )
  const changes = await changesOf(t, chain('192.0.2.1'), chain('192.0.2.2'))
  t.match(changes, [
    { name: 'one.k.example.com.', type: 'A', kind: 'changed', ipv6: 1, via: [] },
    {
      name: 'host.k.example.com.',
      type: 'CNAME',
      kind: 'leads',
      ipv6: 0.5,
      via: ['lb.k.example.com.'],
    },
    {
      name: 'lb.k.example.com.',
      type: 'CNAME',
      kind: 'leads',
      ipv6: 0.5,
      via: ['one.k.example.com.'],
    },
  ])
})

t.test('a wildcard answers for names that are missing', async (t) => {
  const any: Sketch = { name: '*', codes: [], target: '192.0.2.1' }
  const [own, ...none] = await changesOf(
    t,
    side(any),
    side(any, { ...any, name: 'one', target: '192.0.2.2' }),
  )
  t.match(own, { name: 'one.k.example.com.', kind: 'changed', share: 1 })
  t.strictSame(none, [])
  // The wildcard gives the same answer.
  t.strictSame(await changesOf(t, side(any, { ...any, name: 'one' }), side(any)), [])
  const lead = { name: 'host', codes: [], target: 'missing' }
  const changes = await changesOf(t, side(any, lead), side({ ...any, target: '192.0.2.2' }, lead))
  t.match(
    changes.find(({ name }) => name.startsWith('host')),
    { kind: 'leads', share: 1 },
  )
})

t.test('text lists what changes, and --max-share fails', async (t) => {
  const edited = side({ ...eu, target: '192.0.2.7' }, other)
  const { code, printed, errors } = await compare(t, side(eu, other), edited, ['--max-share', '5%'])
  t.equal(code, 1)
  t.strictSame(errors, ['one.k.example.com. A: 50 % is above --max-share 5 %'])
  t.match(printed, [
    /^one\.k\.example\.com\. A changes for 0\.\d+ % of IPv4, 50 % of IPv6, in k\.example\.com\.:53$/,
    '  GEO-EU: 192.0.2.1 100 % -> 192.0.2.7 100 %',
    '  continents: GEO-EU 100 %',
    '  countries: DE 100 %',
    '',
    '1 RRset changes, 2 names compared; largest share: 50 %, one.k.example.com. A',
  ])
  t.equal((await compare(t, side(eu, other), edited, ['--max-share', '50%'])).code, 0)
  const same = await compare(t, side(eu), side(eu))
  t.strictSame([same.code, same.printed], [0, ['no answer changes: 2 names compared']])
})

t.test('new names do not count for --max-share, removed names do', async (t) => {
  const more = side(eu, { ...eu, name: 'two' })
  t.equal((await compare(t, side(eu), more, ['--max-share', '1%'])).code, 0)
  const removed = await compare(t, more, side(eu), ['--max-share', '1%'])
  t.equal(removed.code, 1)
  t.strictSame(removed.errors, ['two.k.example.com. A: 100 % is above --max-share 1 %'])
})

t.test('a new database alone moves clients between tiers', async (t) => {
  const moved = { ...EUROPE, '2400::/6': entryOf(2) }
  const [change] = await changesOf(t, side(eu, other), { ...side(eu, other), networks: moved })
  t.match(change, { kind: 'changed', ipv6: 0.5, tiers: [] })
})

t.test('invalid input is one line with its place', async (t) => {
  const run = async (...args: string[]) => {
    const { output, printed, errors } = recordOutput()
    t.equal(await runWhatIf(args, output), 1)
    t.strictSame(printed, [])
    return errors
  }
  t.match(await run(), [/^no change is named: add --manifests/])
  t.match(await run('--manifests', 'a', '--records', 'b'), [/exclude each other/])
  t.match(await run('--manifests', 'a', '--max-share', '101%'), [
    /^invalid value 101% for --max-share/,
  ])
  t.match(await run('--manifests', 'a', '-o', 'xml'), [/^invalid value xml for -o/])
  t.match(await run('--manifests', 'a', 'b'), [/^extra command line arguments: \[b\]/])
  t.match(await run('--records', '/nowhere'), [/^\/nowhere: cannot be read/])
  t.match(await run('-conf', '/nowhere', '--manifests', 'a'), [/nowhere/])
  const directory = t.testdir({
    Corefile: 'k.example.com {\n kuadrant {\n  manifests records\n }\n}\n'.replace(
      'records',
      `${t.testdirName}/records`,
    ),
    cluster: 'k.example.com {\n kuadrant\n}\n',
    none: '. {\n whoami\n}\n',
    records: { 'one.json': manifest([eu]) },
    'dump.json': JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [JSON.parse(manifest([other]))],
    }),
    'bad.yaml':
      'apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata: { name: x, namespace: y }\nspec: {}\n',
  })
  const conf = (name: string) => ['-conf', join(directory, name)]
  t.match(await run(...conf('Corefile'), '--records', join(directory, 'bad.yaml')), [
    /bad\.yaml:4: y\/x is refused/,
  ])
  t.match(await run(...conf('none'), '--new-conf', join(directory, 'none')), [
    /no server block has kuadrant/,
  ])
  t.match(await run(...conf('cluster'), '--records', join(directory, 'dump.json')), [
    /cluster:2: the records of a cluster are not read offline.*--old-records/,
  ])
  t.match(await run(...conf('Corefile'), '--manifests', '/nowhere'), [/nowhere: cannot be listed/])
})

t.test('records of a cluster are compared from dumps', async (t) => {
  const list = (...sketches: Sketch[]): string =>
    JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [JSON.parse(manifest(sketches))] })
  const directory = t.testdir({
    Corefile: 'k.example.com {\n kuadrant\n}\n',
    'old.json': list(eu),
    'new.json': list({ ...eu, target: '192.0.2.2' }),
  })
  const { output, printed, errors } = recordOutput()
  const at = (name: string): string => join(directory, name)
  const args = [
    '-conf',
    at('Corefile'),
    '--old-records',
    at('old.json'),
    '--records',
    at('new.json'),
  ]
  t.equal(await runWhatIf(args, output), 0)
  t.strictSame(errors, [])
  t.match(printed[0], /^one\.k\.example\.com\. A changes for 100 % of IPv4, 100 % of IPv6/)
})
