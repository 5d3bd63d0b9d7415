import { InputError } from '../base/errors.ts'
import { type Address, type Cidr, maskAddress, printAddress } from '../dns/text/address.ts'
import { bundledLocator } from '../geo/bundled-locator.ts'
import { type Location, ladderOf, UNKNOWN_LOCATION } from '../geo/location.ts'
import { type DatabaseEvidence, LOCATOR, type Locator } from '../geo/locator.ts'
import { type Net, printNetValues } from '../geo/net.ts'
import { printCoordinates } from '../geo/point.ts'
import type { OfflineBlock } from '../publish/offline/offline-block.ts'
import { describe } from '../server/supervisor.ts'
import { chooseCorefile } from './corefile.ts'
import { printData } from './data-format.ts'
import { type GeoArgs, scanGeoArgs } from './geo-args.ts'
import { loadOffline } from './offline.ts'
import { errorLines, type Output } from './output.ts'
import { type Line, toned } from './tones.ts'

/** The place of an address, as one server block finds it. */
interface GeoReport {
  /** Zones of the server block; empty = the bundled database, without a Corefile. */
  readonly zones: readonly string[]
  readonly location: Location
  /** In order of precedence. */
  readonly databases: readonly DatabaseEvidence[]
  /** The `net` lines that contain the address. */
  readonly nets: readonly Net[]
  /** The class of the address in the records of the block, or why it has no class. */
  readonly geoClass: GeoClass | { readonly reason: string }
  /** True if `geoip` has `edns-subnet`, so that replies have a scope. */
  readonly sendsScope: boolean
}

interface GeoClass {
  readonly number: number
  readonly count: number
  /** The codes in use that match, in the order of the ladder. */
  readonly codes: readonly string[]
  readonly scopeBits: number
}

const NO_RECORDS = { reason: 'no records: the class depends on the geo codes in use' }

/**
 * `sextant geo ADDR`: prints the place of an address and where it comes from, for each server block
 * with `geoip`. Resolves to 0, or to 1 for invalid input.
 */
export async function runGeo(argv: readonly string[], output: Output): Promise<number> {
  try {
    const args = scanGeoArgs(argv)
    const reports =
      args.conf === undefined ? [await locate(args)] : await locateInBlocks(args, output)
    printData(output, args.format, {
      data: () => jsonOf(args, reports),
      table: () => linesOf(args, reports),
    })
    return 0
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const one of error.all()) output.printError(describe(one))
    return 1
  }
}

/** Locates the address with the bundled database. */
async function locate({ address }: GeoArgs): Promise<GeoReport> {
  const locator = bundledLocator()
  try {
    await locator.open({ readsEntries: true })
    return { zones: [], ...placeOf(locator, address), geoClass: NO_RECORDS, sendsScope: false }
  } finally {
    locator.close()
  }
}

async function locateInBlocks(args: GeoArgs, output: Output): Promise<GeoReport[]> {
  const corefile = chooseCorefile(args.conf, 0)
  const server = await loadOffline(
    { corefile, dnsPort: 53, records: args.records },
    { lines: errorLines(output) },
  )
  try {
    const reports: GeoReport[] = []
    for (const block of server.instance.configs) {
      const { shared, keys } = block
      const locator = shared.find(LOCATOR)
      if (locator === undefined) continue
      const zones = keys.map(({ zoneText, port }) => `${zoneText}:${port}`)
      const own = server.blocks.find((other) => other.block === block)
      const geoClass = own === undefined ? NO_RECORDS : await classify(own, args.address, output)
      reports.push({
        zones,
        ...placeOf(locator, args.address),
        geoClass,
        sendsScope: block.metadata.locatesSubnet,
      })
    }
    if (reports.length === 0) throw new InputError(undefined, 'no server block has geoip')
    return reports
  } finally {
    await server.close()
  }
}

function placeOf(locator: Locator, { bytes, family }: Address) {
  return {
    location: locator.locate(bytes, family),
    databases: locator.evidence?.(bytes, family) ?? [],
    nets: locator.netsAround?.(bytes, family) ?? [],
  }
}

/** Invalid records are warnings, because their geo codes may be missing. */
async function classify(
  block: OfflineBlock,
  { bytes, family }: Address,
  output: Output,
): Promise<GeoReport['geoClass']> {
  try {
    const { trie } = (await block.serve()).table
    const { store } = await block.zones.read()
    for (const fault of store.faults.all()) output.printError(`[WARNING] ${describe(fault)}`)
    const number = trie.lookup(bytes, family, family === 1 ? 32 : 128)
    const codes = trie.codesOf[number]!.map((code) => code.text)
    return { number, count: trie.classCount, codes, scopeBits: trie.depth }
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return { reason: describe(error) }
  }
}

function* linesOf({ text, address }: GeoArgs, reports: readonly GeoReport[]): Generator<Line> {
  for (const [i, { zones, location, databases, nets, geoClass, sendsScope }] of reports.entries()) {
    if (i > 0) yield ''
    yield [toned('heading', zones.length === 0 ? text : `${text} in ${zones.join(', ')}`)]
    yield row('net', location.net)
    yield row('ASN', location.asn === 0 ? '' : `AS${location.asn}`)
    yield row('subdivisions', location.subdivisions.join(', '))
    yield row('country', location.country)
    yield row('continent', location.continent)
    yield row('coordinates', printCoordinates(location.coordinates))
    yield row('geo codes', [...ladderOf(location), '*'].join(', '))
    for (const database of databases) {
      const { file, type, builtSeconds } = database
      yield row('database', `${file} (${type}), built ${printDay(builtSeconds)}`)
      const unknown = database.location === UNKNOWN_LOCATION ? ', without a location' : ''
      const found = database.isIgnored ? ', a special prefix: the database is not asked' : unknown
      yield row('  prefix', `${printPrefix(database, address)}${found}`)
    }
    for (const net of nets) {
      yield row('net line', [printCidr(net.cidr), ...printNetValues(net)].join(' '))
    }
    if ('reason' in geoClass) yield row('class', `unknown: ${geoClass.reason}`)
    else {
      const codes = geoClass.codes.join(', ') || 'no code in use matches'
      yield row('class', `${geoClass.number} of ${geoClass.count}: ${codes}`)
      const scope = `/${geoClass.scopeBits}`
      yield row(
        'ECS scope',
        sendsScope ? scope : `none, because geoip has no edns-subnet; else ${scope}`,
      )
    }
  }
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(14)}${value || '-'}`
}

/** Prints the prefix of the database around the address. */
function printPrefix({ family, prefixBits: bits }: DatabaseEvidence, address: Address): string {
  const isFolded = family === 1 && address.family === 2
  const bytes = isFolded ? address.bytes.subarray(12) : address.bytes
  return printCidr({ family, bytes: maskAddress(bytes, bits), bits })
}

function printCidr({ bytes, family, bits }: Cidr): string {
  return `${printAddress(bytes, family)}/${bits}`
}

function printDay(seconds: number): string {
  return seconds === 0 ? 'at an unknown time' : new Date(seconds * 1000).toISOString().slice(0, 10)
}

function jsonOf({ text, address }: GeoArgs, reports: readonly GeoReport[]) {
  return {
    address: text,
    blocks: reports.map(({ zones, location, databases, nets, geoClass, sendsScope }) => ({
      zones,
      location,
      geoCodes: [...ladderOf(location), '*'],
      databases: databases.map((database) => {
        const { file, type, builtSeconds, isIgnored, location } = database
        const prefix = printPrefix(database, address)
        return { file, type, builtSeconds, prefix, isIgnored, location }
      }),
      nets: nets.map((net) => ({ cidr: printCidr(net.cidr), values: printNetValues(net) })),
      class: geoClass,
      sendsScope,
    })),
  }
}
