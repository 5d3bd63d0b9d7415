import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Random } from '../../src/base/random.ts'
import { runWhatIf } from '../../src/cli/what-if.ts'
import { type Location, ladderOf } from '../../src/geo/location.ts'
import { Database } from '../../src/geo/mmdb/database.ts'
import { type Net, NetTable, scanNet } from '../../src/geo/net.ts'
import { distanceKm, scanPoint } from '../../src/geo/point.ts'
import { composeMmdb, type MmdbValue } from '../support/mmdb.ts'
import { recordOutput } from '../support/recorded-output.ts'

/** An endpoint of a test record. */
export interface Sketch {
  readonly name: string
  readonly codes: readonly string[]
  readonly weight?: number | undefined
  readonly location?: string | undefined
  readonly target: string
  readonly ttl?: number
}

const PLACES = [
  ['DE', 'EU'],
  ['FR', 'EU'],
  ['US', 'NA'],
  ['CA', 'NA'],
  ['JP', 'AS'],
] as const
const CODES = ['DE', 'FR', 'US', 'GEO-EU', 'GEO-NA', 'GEO-AS', 'NET-OFFICE', '*']
const NETS = ['64.0.0.0/4 NET-OFFICE', '72.0.0.0/5 35.00,135.00']
export const NAMES = ['a', 'b', 'c']
const LOCATIONS = ['52.52,13.40', '48.86,2.35', '40.71,-74.01', '35.68,139.69', '-33.87,151.21']

export function manifest(sketches: readonly Sketch[], answers?: string): string {
  const endpoints = sketches.map(({ name, codes, weight, location, target, ttl = 60 }, i) => {
    const isName = !/^[0-9]/.test(target)
    const properties = [
      ...(codes.length === 0 ? [] : [{ name: 'geo-code', value: codes.join(',') }]),
      ...(weight === undefined ? [] : [{ name: 'weight', value: String(weight) }]),
      ...(location === undefined ? [] : [{ name: 'location', value: location }]),
    ]
    return {
      dnsName: name === '' ? 'k.example.com' : `${name}.k.example.com`,
      recordType: isName ? 'CNAME' : 'A',
      recordTTL: ttl,
      setIdentifier: `e${i}`,
      targets: [isName ? `${target}.k.example.com` : target],
      providerSpecific: properties,
    }
  })
  return JSON.stringify({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'one', namespace: 'docs', annotations: { 'sextant.io/answers': answers } },
    spec: { rootHost: 'k.example.com', endpoints },
  })
}

export interface Side {
  readonly sketches: readonly Sketch[]
  readonly networks: Readonly<Record<string, MmdbValue>>
  /** The annotation `answers`; undefined = none. */
  readonly answers?: string
}

export interface Change {
  readonly name: string
  readonly type: string
  readonly kind: string
  readonly share: number
  readonly ipv4: number
  readonly ipv6: number
  readonly private4: number
  readonly countries: { code: string; ipv4: number; ipv6: number }[]
  readonly continents: { code: string; ipv4: number; ipv6: number }[]
  readonly via: string[]
  readonly ttl?: { before: number; after: number }
  readonly tiers: { clients: string; before: string; after: string }[]
}

let runs = 0

/** Runs the command over two configurations that differ in records and database. */
export async function compare(t: Test, before: Side, after: Side, args: readonly string[] = []) {
  const directory = join(t.testdir({}), `run${runs++}`)
  for (const [side, { sketches, networks, answers }] of Object.entries({ before, after })) {
    mkdirSync(join(directory, side), { recursive: true })
    if (sketches.length > 0)
      writeFileSync(join(directory, side, 'one.json'), manifest(sketches, answers))
    const builtSeconds = Math.trunc(Date.now() / 1000)
    writeFileSync(join(directory, `${side}.mmdb`), composeMmdb({ networks, builtSeconds }))
  }
  const corefile = `k.example.com {
 root ${directory}
 geoip before.mmdb {
${NETS.map((line) => `  net ${line}`).join('\n')}
 }
 kuadrant {
  manifests before
 }
}
`
  writeFileSync(join(directory, 'Corefile'), corefile)
  const { output, printed, errors } = recordOutput(directory)
  const conf = ['-conf', join(directory, 'Corefile'), '--manifests', join(directory, 'after')]
  const mmdb = before.networks === after.networks ? [] : ['--mmdb', join(directory, 'after.mmdb')]
  const others = args.map((arg) => arg.replace('{DIR}', directory))
  const code = await runWhatIf([...conf, ...mmdb, ...others], output)
  return { code, printed, errors }
}

export async function changesOf(t: Test, before: Side, after: Side): Promise<Change[]> {
  const { code, printed, errors } = await compare(t, before, after, ['-o', 'json'])
  t.strictSame(errors, [])
  t.equal(code, 0)
  return JSON.parse(printed.join('\n')).changes
}

/** The answers of a name for clients at a place, by the rules of docs/explanation/choice.md. */
export function answersAt(
  sketches: readonly Sketch[],
  name: string,
  location: Location,
  depth = 0,
): string {
  const all = sketches.filter((sketch) => sketch.name === name)
  if (all.length === 0 || depth > 8) return 'none'
  const areStandbys = all.every(({ weight }) => weight === 0)
  const serves = (members: readonly Sketch[]): boolean =>
    members.length > 0 && (areStandbys || members.some(({ weight }) => weight !== 0))
  const members = membersFor(all, location, serves)
  const isCname = !/^[0-9]/.test(members[0]!.target)
  const isWeighted = members.some(({ weight }) => weight !== undefined)
  const print = ({ target }: Sketch): string =>
    isCname ? `${target}(${answersAt(sketches, target, location, depth + 1)})` : target
  if (!isWeighted && !isCname) return [...new Set(members.map(print))].sort().join('+')
  const weights = new Map<string, number>()
  for (const member of members) {
    const weight = member.weight ?? (isWeighted ? 120 : 1)
    const counted = members.every((one) => one.weight === 0) ? 1 : weight
    if (counted > 0) weights.set(print(member), (weights.get(print(member)) ?? 0) + counted)
  }
  if (weights.size === 1) return [...weights.keys()][0]!
  const sum = [...weights.values()].reduce((a, b) => a + b, 0)
  const shares = [...weights].map(([key, weight]) => `${key} ${(weight / sum).toFixed(9)}`)
  return shares.sort().join('|')
}

/** The endpoints that compete for clients at a place. */
function membersFor(
  all: readonly Sketch[],
  location: Location,
  serves: (members: readonly Sketch[]) => boolean,
): readonly Sketch[] {
  const { coordinates } = location
  const nearest = (members: readonly Sketch[]): readonly Sketch[] | undefined => {
    if (coordinates === undefined) return undefined
    const groups = LOCATIONS.map((text) => members.filter((one) => one.location === text))
    const distance = (group: readonly Sketch[]): number =>
      distanceKm(coordinates, scanPoint(group[0]!.location!)!)
    return groups.filter(serves).sort((a, b) => distance(a) - distance(b))[0]
  }
  for (const code of ladderOf(location)) {
    const members = all.filter(({ codes }) => codes.includes(code))
    if (serves(members)) return nearest(members) ?? members
  }
  const defaults = all.filter(({ codes }) => codes.includes('*'))
  const uncoded = all.filter(({ codes }) => codes.length === 0 || codes.includes('*'))
  const last = serves(defaults) ? defaults : all
  return nearest(uncoded) ?? nearest(last) ?? last
}

export function randomSide(random: Random, hasCnames: boolean, hasLocations = false): Side {
  const any = <T>(list: readonly T[]): T => list[random.below(list.length)]!
  const sketches: Sketch[] = NAMES.flatMap((name, n) =>
    Array.from({ length: 1 + random.below(4) }, () => {
      const isCname = hasCnames && n < NAMES.length - 1
      const codes = random.below(3) === 0 ? [] : [...new Set([any(CODES), any(CODES)])]
      const weight = random.below(3) === 0 ? any([0, 1, 2, 100]) : undefined
      const target = isCname ? NAMES[n + 1]! : `192.0.2.${1 + random.below(4)}`
      const location = hasLocations && random.below(4) > 0 ? any(LOCATIONS) : undefined
      return { name, codes, weight, location, target }
    }),
  )
  return { sketches, networks: randomNetworks(random, hasLocations) }
}

function randomNetworks(random: Random, hasLocations: boolean): Record<string, MmdbValue> {
  const octet = () => random.below(256)
  const networks: Record<string, MmdbValue> = { '2000::/4': entryOf(0) }
  for (let i = 0; i < 40; i++) {
    const text =
      i % 2 === 0
        ? `${octet()}.${octet()}.0.0/${2 + random.below(12)}`
        : `${(0x2000 + random.below(0x2000)).toString(16)}:${random.below(65536).toString(16)}::/${4 + random.below(12)}`
    const place = entryOf(random.below(PLACES.length))
    const latitude = random.below(180) - 89.5
    const longitude = random.below(360) - 179.5
    const isLocated = hasLocations && random.below(5) > 0
    networks[text] = isLocated ? { ...place, location: { latitude, longitude } } : place
  }
  return networks
}

export function entryOf(place: number): { readonly [key: string]: MmdbValue } {
  const [country, continent] = PLACES[place]!
  return { country: { iso_code: country }, continent: { code: continent } }
}

export function locatorOf({ networks }: Side): (bytes: Uint8Array, family: number) => Location {
  const database = new Database({ file: 'test.mmdb', bytes: composeMmdb({ networks }) })
  const nets = new NetTable(
    NETS.map((line) => scanNet(...(line.split(' ') as [string, ...string[]])) as Net),
  )
  return (bytes, family) => nets.place(bytes, family, database.locate(bytes, family))
}

export function isPublic([a = 0, b = 0]: Uint8Array): boolean {
  // Wider than what is left out, in whole octets; the test leaves these addresses out on both sides.
  return a !== 0 && a !== 10 && a !== 127 && a < 224 && !(a === 100 && b >= 64 && b < 128)
}
