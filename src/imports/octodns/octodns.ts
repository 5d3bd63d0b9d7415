import { basename } from 'node:path'
import { InputError } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import {
  FieldPlace,
  field,
  isMapping,
  mappingField,
  printPath,
  quote,
  RefusedError,
  scalarField,
  sequenceField,
  stringField,
} from '../../records/validate/fields.ts'
import { RECORD_TYPES } from '../../records/validate/target.ts'
import { parseOneDocument, YamlProblem } from '../../yaml/parse-document.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { ImportFile, ImportFormat } from '../import-format.ts'
import { endpointDocument } from '../imported-endpoint.ts'
import type { HealthCheckDocument, ImportedHosts } from '../imported-hosts.ts'
import { NetClasses } from '../net-classes.ts'
import { fallbacksOf, type Pool, readDynamic } from './dynamic.ts'
import { geoCodeOf } from './geo.ts'
import { targetOf } from './values.ts'

type Mapping = { readonly [key: string]: YamlValue }

/** As the provider for YAML files. */
const TTL_DEFAULT_SECONDS = 3600
/** `? ''` before the records of the apex, as octodns-dump writes it; the fast scanners do not know this form. */
const APEX_KEY = /^\? (''|"")\n: /gm
/** Before the name of a pool that no rule has. */
const FALLBACK_CODE = 'NET-FALLBACK-'
const KNOWN_FIELDS: readonly string[] = [
  'type',
  'ttl',
  'value',
  'values',
  'geo',
  'dynamic',
  'octodns',
  'lenient',
]
const KNOWN_SETTINGS: readonly string[] = ['healthcheck', 'lenient']

/** Zones of octoDNS in YAML: the name of a file is that of its zone. */
export const OCTODNS: ImportFormat = {
  word: 'octodns',
  files: 'YAML of octoDNS, named as the zone',
  read: (files, hosts, { zone }) => {
    const nets = new NetClasses()
    const zones = files.map((file) => {
      return new OctodnsZone(file.name, zoneOf(file, zone), hosts, nets)
    })
    const pending = zones.flatMap((one, index) => one.read(parseZone(files[index]!)))
    // The codes of networks are known when all records are read.
    for (const add of pending) add()
    for (const { cidr, code, place } of nets.lines())
      hosts.note(place, `add to the directive geoip: net ${cidr} ${code}`)
  },
}

function zoneOf({ name }: ImportFile, zone: Uint8Array | undefined): string {
  if (zone !== undefined) return printName(zone).slice(0, -1)
  const found = /^(?:.*\/)?([^/]+?)\.?\.ya?ml$/.exec(basename(name))?.[1]
  if (found !== undefined) return found
  throw new InputError(
    { file: name, line: 1 },
    'the name of the file is not a zone; add --zone NAME',
  )
}

function parseZone({ name, octets }: ImportFile): Mapping {
  const text = octets.toString('utf8').replace(APEX_KEY, '$1:\n  ')
  const value = parseOneDocument(text)
  if (value instanceof YamlProblem) {
    throw new InputError({ file: name, line: value.line }, value.message)
  }
  if (isMapping(value)) return value
  throw new InputError({ file: name, line: 1 }, 'is not a mapping from names to records')
}

/** Adds endpoints when the codes of networks are known. */
type Add = () => void

/** The place of one record, and where it belongs. */
interface RecordScope {
  readonly host: string
  readonly type: string
  readonly ttlSeconds: number
  readonly place: FieldPlace
}

class OctodnsZone {
  readonly #file: string
  readonly #zone: string
  readonly #hosts: ImportedHosts
  readonly #nets: NetClasses

  constructor(file: string, zone: string, hosts: ImportedHosts, nets: NetClasses) {
    this.#file = file
    this.#zone = zone
    this.#hosts = hosts
    this.#nets = nets
  }

  read(records: Mapping): Add[] {
    const adds: Add[] = []
    for (const [name, value] of Object.entries(records)) {
      const place = new FieldPlace('').at(name === '' ? "''" : name)
      const list: readonly YamlValue[] = Array.isArray(value) ? value : [value]
      for (const [index, record] of list.entries()) {
        const at = Array.isArray(value) ? place.at(index) : place
        try {
          adds.push(...this.#readRecord(name, record, at))
        } catch (error) {
          if (!(error instanceof RefusedError)) throw error
          const { path, message } = error.problem
          this.#hosts.note(`${this.#file}: ${printPath(path)}`, `not imported: ${message}`)
        }
      }
    }
    return adds
  }

  #readRecord(name: string, record: YamlValue, place: FieldPlace): Add[] {
    if (!isMapping(record)) throw new RefusedError(place, 'a record must be a mapping')
    const host = name === '' ? this.#zone : `${name}.${this.#zone}`
    const type = stringField(record, 'type', place)
    const reason = reasonAgainst(type, name)
    if (reason !== '') throw new RefusedError(place, `${type} of ${host}: ${reason}`)
    const settings = mappingField(record, 'octodns', place)
    if (field(settings, 'ignored') === true)
      throw new RefusedError(place, `octoDNS ignores ${type} of ${host}`)
    for (const one of Object.keys(record)) {
      if (!KNOWN_FIELDS.includes(one)) this.#note(place.at(one), 'unknown field, ignored')
    }
    for (const one of Object.keys(settings)) {
      if (!KNOWN_SETTINGS.includes(one)) this.#note(place.at('octodns').at(one), 'has no effect')
    }
    const scope = { host, type, ttlSeconds: scanTtl(record, place), place }
    if (field(record, 'dynamic') !== undefined) return this.#readDynamic(record, settings, scope)
    const targets = readTargets(record, type, place)
    const geo = mappingField(record, 'geo', place)
    const located = Object.keys(geo).map((code) => {
      const at = place.at('geo')
      const values = sequenceField(geo, code, at).map((value) => targetOf(type, value, at.at(code)))
      return { code, geoCodes: [geoCodeOf(code, at.at(code))], targets: values }
    })
    if (located.length > 0) this.#check(settings, scope)
    const rest = located.length === 0 ? {} : { setIdentifier: 'default', isDefault: true }
    return [
      () => {
        for (const { code, ...part } of located) this.#add({ ...part, setIdentifier: code }, scope)
        this.#add({ targets, ...rest }, scope)
      },
    ]
  }

  #readDynamic(record: Mapping, settings: Mapping, scope: RecordScope): Add[] {
    const { host, type, place } = scope
    const at = place.at('dynamic')
    const map = `${this.#file}: ${printPath(at.path())}`
    const pools = readDynamic(
      mappingField(record, 'dynamic', place),
      { type, map, nets: this.#nets },
      at,
    )
    this.#check(settings, scope)
    const used = usedPools(pools)
    for (const pool of pools.values()) {
      if (!used.has(pool)) this.#note(pool.place, `no rule uses pool ${quote(pool.name)}`)
    }
    return [
      () => {
        const codes = new Map([...used].map((pool) => [pool, this.#codesOf(pool, map)]))
        for (const [pool, geoCodes] of codes) this.#addPool(pool, geoCodes, scope)
        const lines = failoverLines(codes, pools)
        if (lines.length > 0)
          this.#hosts.annotate(host, 'sextant.io/failover', lines.join('\n'), map)
      },
    ]
  }

  /**
   * A pool that is only a fallback is a standby if it has one value. If it has more, it has the code of a custom net
   * without networks: standbys have no weights.
   */
  #codesOf(pool: Pool, map: string): readonly string[] {
    const { name, geoCodes, hasNets, isDefault, place } = pool
    const codes = [...(hasNets ? this.#nets.codesOf(map, name) : []), ...geoCodes]
    if (codes.length > 0 || isDefault || isStandby(pool)) return codes
    const code = `${FALLBACK_CODE}${name
      .toUpperCase()
      .replace(/[^0-9A-Z_-]/g, '-')
      .slice(0, 50)}`
    this.#note(
      place,
      `${code} is only for failover lists: no client has this geo code, and sextant check warns of it`,
    )
    return [code]
  }

  #addPool(pool: Pool, geoCodes: readonly string[], scope: RecordScope): void {
    const { name, values, isDefault } = pool
    for (const { status, place } of values) {
      if (status === 'down') this.#note(place, 'status down: not imported')
      if (status === 'up') this.#note(place, 'status up: Sextant probes it like the others')
    }
    const served = servedOf(pool)
    for (const [index, { target, weight }] of served.entries()) {
      const isAlone = served.length === 1
      const setIdentifier = isAlone ? nameOfLone(pool) : `${name}-${index + 1}`
      const weights = isAlone ? (isStandby(pool) ? { weight: 0 } : {}) : { weight }
      this.#add({ targets: [target], setIdentifier, geoCodes, isDefault, ...weights }, scope)
    }
  }

  #add(
    part: { targets: readonly string[] } & Partial<Parameters<typeof endpointDocument>[0]>,
    { host, type, ttlSeconds, place }: RecordScope,
  ): void {
    this.#hosts.add(endpointDocument({ host, type, ttlSeconds, ...part }), this.#at(place))
  }

  /** octoDNS leaves the interval to the provider. */
  #check(settings: Mapping, { host, place }: RecordScope): void {
    const at = place.at('octodns')
    const check = mappingField(settings, 'healthcheck', at)
    const here = at.at('healthcheck')
    const protocol = stringField(check, 'protocol', here) || 'HTTPS'
    const path = stringField(check, 'path', here) || '/_dns'
    const name = stringField(check, 'host', here)
    const isTcp = protocol === 'TCP'
    if (name !== '' && name !== host && !isTcp)
      this.#note(here.at('host'), `probes send the host name ${host}, not ${name}`)
    const document: HealthCheckDocument = {
      protocol,
      port: Number(scalarField(check, 'port', here) || '443'),
      ...(isTcp ? {} : { path: path.startsWith('/') ? path : `/${path}`, expectedStatus: '200' }),
      interval: '10s',
    }
    this.#hosts.check(host, document, this.#at(place))
  }

  #note(place: FieldPlace, message: string): void {
    this.#hosts.note(this.#at(place), message)
  }

  #at(place: FieldPlace): string {
    return `${this.#file}: ${printPath(place.path())}`
  }
}

/** '' = the record can be imported. */
function reasonAgainst(type: string, name: string): string {
  if (type === 'NS' && name === '')
    return 'Sextant makes the NS records of a zone from `nameserver` in the directive kuadrant'
  return RECORD_TYPES.has(type) ? '' : 'a DNSRecord has no records of this type'
}

function scanTtl(record: Mapping, place: FieldPlace): number {
  const text = scalarField(record, 'ttl', place) || String(TTL_DEFAULT_SECONDS)
  if (/^\d{1,10}$/.test(text)) return Number(text)
  throw new RefusedError(place.at('ttl'), `ttl must be a number of seconds, got ${quote(text)}`)
}

function readTargets(record: Mapping, type: string, place: FieldPlace): string[] {
  const one = field(record, 'value')
  if (one !== undefined && !Array.isArray(one)) return [targetOf(type, one, place.at('value'))]
  const name = one === undefined ? 'values' : 'value'
  const values = field(record, name)
  if (values === undefined) throw new RefusedError(place, 'the record has no value')
  const list: readonly YamlValue[] = Array.isArray(values) ? values : [values]
  return list.map((value, index) => targetOf(type, value, place.at(name).at(index)))
}

function servedOf({ values }: Pool): Pool['values'] {
  return values.filter(({ status }) => status !== 'down')
}

function isOnlyFallback({ geoCodes, hasNets, isDefault }: Pool): boolean {
  return geoCodes.length === 0 && !hasNets && !isDefault
}

function isStandby(pool: Pool): boolean {
  return isOnlyFallback(pool) && servedOf(pool).length === 1
}

/** The set identifier of a pool with one value. That of a standby is an entry of a failover list, and no geo code. */
function nameOfLone(pool: Pool): string {
  return isStandby(pool) ? `fallback-${pool.name}` : pool.name
}

/** The pools of rules, and their fallbacks. */
function usedPools(pools: ReadonlyMap<string, Pool>): ReadonlySet<Pool> {
  const used = new Set<Pool>()
  for (const pool of pools.values()) {
    if (isOnlyFallback(pool)) continue
    used.add(pool)
    for (const fallback of fallbacksOf(pool, pools)) used.add(fallback)
  }
  return used
}

/** The lines of `sextant.io/failover`: for each code of a pool, where its clients go if the pool is down. */
function failoverLines(
  codes: ReadonlyMap<Pool, readonly string[]>,
  pools: ReadonlyMap<string, Pool>,
): string[] {
  const entryOf = (pool: Pool): string => {
    return codes.get(pool)?.[0] ?? (pool.isDefault ? '*' : nameOfLone(pool))
  }
  return [...codes].flatMap(([pool, own]) => {
    const entries = fallbacksOf(pool, pools).filter((one) => servedOf(one).length > 0)
    if (entries.length === 0) return []
    const keys = own.filter((code) => !code.startsWith(FALLBACK_CODE))
    return [...keys, ...(pool.isDefault ? ['*'] : [])].map((code) => {
      return `${code}: ${entries.map(entryOf).join(', ')}`
    })
  })
}
