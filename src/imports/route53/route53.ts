import { InputError } from '../../base/errors.ts'
import { printName } from '../../dns/name/name.ts'
import { scanAddress } from '../../dns/text/address.ts'
import type { EndpointDocument } from '../../records/record-document.ts'
import {
  FieldPlace,
  type FieldProblem,
  field,
  isMapping,
  mappingField,
  printPath,
  RefusedError,
  scalarField,
  sequenceField,
  stringField,
} from '../../records/validate/fields.ts'
import { SETTING_NAMES } from '../../records/validate/settings.ts'
import { RECORD_TYPES } from '../../records/validate/target.ts'
import type { YamlValue } from '../../yaml/scan-block-yaml.ts'
import type { ImportFile, ImportFormat } from '../import-format.ts'
import { endpointDocument } from '../imported-endpoint.ts'
import type { ImportedHosts } from '../imported-hosts.ts'
import { parseJsonObject } from '../parse-json.ts'
import { idOf, type Route53Check, readHealthCheck } from './health-checks.ts'
import { type Routing, readRouting } from './steering.ts'
import { decimalOf, nameOf } from './text.ts'

type Mapping = { readonly [key: string]: YamlValue }

const SETS = 'ResourceRecordSets'
const CHECKS = 'HealthChecks'
const KNOWN_FIELDS: ReadonlySet<string> = new Set([
  ...['Name', 'Type', 'TTL', 'ResourceRecords', 'AliasTarget', 'SetIdentifier', 'HealthCheckId'],
  ...['Weight', 'Region', 'Failover', 'GeoLocation', 'GeoProximityLocation', 'CidrRoutingConfig'],
  ...['MultiValueAnswer', 'TrafficPolicyInstanceId'],
])
const ADDRESS_TYPES: readonly string[] = ['A', 'AAAA']
/** Most records of an answer with MultiValueAnswer. */
const ANSWERS = 8
const ANSWERS_ANNOTATION = 'sextant.io/answers'

/** The record sets of a hosted zone, and the health checks that they name. */
export const ROUTE53: ImportFormat = {
  word: 'route53',
  files: 'JSON of `aws route53 list-resource-record-sets` and `list-health-checks`',
  read: (files, hosts, { zone }) => {
    const parsed = files.map((file) => ({ file, value: parseParts(file) }))
    const checks = new Map<string, PlacedCheck>()
    for (const { file, value } of parsed) collectChecks(file.name, value, checks)
    const sets = parsed.flatMap(({ file, value }) => placeSets(file.name, value))
    if (sets.length === 0)
      throw new InputError(undefined, `${files.map(({ name }) => name).join(' ')}: no ${SETS}`)
    const soa = sets.find(({ set }) => set.Type === 'SOA')
    const name = zone === undefined ? soa?.set.Name : printName(zone)
    const apex = typeof name === 'string' ? nameOf(name).toLowerCase() : ''
    new RecordSets(hosts, checks, apex).read(sets)
  },
}

/** An item of `ResourceRecordSets`. */
interface PlacedSet {
  readonly set: Mapping
  /** The file and the path, as messages show them. */
  readonly place: string
}

interface PlacedCheck {
  readonly place: string
  readonly found: Route53Check | FieldProblem
}

function parseParts(file: ImportFile): Mapping {
  const value = parseJsonObject(file)
  if (Array.isArray(value[SETS]) || Array.isArray(value[CHECKS])) return value
  const message = `has neither ${SETS} nor ${CHECKS}: print them with aws route53 list-resource-record-sets --output json`
  throw new InputError({ file: file.name, line: 1 }, message)
}

function collectChecks(file: string, value: Mapping, checks: Map<string, PlacedCheck>): void {
  const items = value[CHECKS]
  if (!Array.isArray(items)) return
  for (const [index, item] of items.entries()) {
    if (!isMapping(item)) continue
    const place = `${file}: ${CHECKS}[${index}]`
    checks.set(idOf(item), { place, found: tryRead(() => readHealthCheck(item)) })
  }
}

function placeSets(file: string, value: Mapping): PlacedSet[] {
  const sets = value[SETS]
  if (!Array.isArray(sets)) return []
  return sets.map((set, index) => {
    const place = `${file}: ${SETS}[${index}]`
    if (isMapping(set)) return { set, place }
    throw new InputError({ file, line: 1 }, `${SETS}[${index}] is not a JSON object`)
  })
}

function tryRead<T>(read: () => T): T | FieldProblem {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    return error.problem
  }
}

/** Makes endpoints from record sets: one for each. */
class RecordSets {
  readonly #hosts: ImportedHosts
  readonly #checks: ReadonlyMap<string, PlacedCheck>
  /** With a final dot; '' = unknown. */
  readonly #apex: string
  /** The port of the health check of each host that has one. */
  readonly #checkPorts = new Map<string, number>()
  /** As JSON. */
  readonly #aliases = new Set<string>()
  /** Sets by name and type: those with geo codes, whether one is the default, and the number of multivalue answers. */
  readonly #groups = new Map<
    string,
    { place: string; located: number; hasDefault: boolean; many: number }
  >()

  constructor(hosts: ImportedHosts, checks: ReadonlyMap<string, PlacedCheck>, apex: string) {
    this.#hosts = hosts
    this.#checks = checks
    this.#apex = apex
  }

  read(sets: readonly PlacedSet[]): void {
    for (const placed of sets) {
      const problem = tryRead(() => this.#readSet(placed))
      if (problem === undefined) continue
      const { path, message } = problem
      this.#hosts.note(placeAt(placed.place, path), `not imported: ${message}`)
    }
    for (const { set, place } of sets) this.#noteUnchecked(set, place)
    for (const [key, { place, located, hasDefault, many }] of this.#groups) {
      if (located > 0 && !hasDefault) {
        const message = `${key} has no default: Route 53 sends clients elsewhere an empty answer, Sextant one of all endpoints`
        this.#hosts.note(place, message)
      }
      if (many > ANSWERS && !SETTING_NAMES.includes(ANSWERS_ANNOTATION))
        this.#hosts.note(place, `${key} has ${many} values: Sextant returns all, not ${ANSWERS}`)
    }
  }

  /** Throws RefusedError; paths begin at the set. */
  #readSet({ set, place: at }: PlacedSet): undefined {
    const place = new FieldPlace('')
    const host = nameOf(stringField(set, 'Name', place))
    const type = stringField(set, 'Type', place)
    for (const name in set) {
      if (!KNOWN_FIELDS.has(name)) this.#hosts.note(placeAt(at, [name]), 'unknown field, ignored')
    }
    const reason = this.#reasonAgainst(host, type)
    if (reason !== '') {
      this.#hosts.note(at, `${type} of ${host} not imported: ${reason}`)
      return
    }
    const routing = readRouting(set, place)
    for (const [name, message] of routing.notes) this.#hosts.note(placeAt(at, [name]), message)
    const data = readData(set, type, place)
    const setIdentifier = stringField(set, 'SetIdentifier', place)
    const probeAt = this.#readCheck(set, host, data.targets, at)
    const { notes: _, ...steering } = routing
    const endpoint = endpointDocument({ host, setIdentifier, ...data, ...steering, probeAt })
    if (data.type === 'ALIAS' && this.#isKnownAlias(endpoint)) return
    this.#hosts.add(endpoint, at)
    this.#count(`${type} of ${host}`, routing, field(set, 'MultiValueAnswer') === true, at)
    if (field(set, 'MultiValueAnswer') === true && SETTING_NAMES.includes(ANSWERS_ANNOTATION))
      this.#hosts.annotate(host, ANSWERS_ANNOTATION, String(ANSWERS), at)
  }

  /** True for the second one of the aliases of A and AAAA. */
  #isKnownAlias(endpoint: EndpointDocument): boolean {
    const key = JSON.stringify(endpoint)
    const isKnown = this.#aliases.has(key)
    this.#aliases.add(key)
    return isKnown
  }

  /** '' = the record set can be imported. */
  #reasonAgainst(host: string, type: string): string {
    const isApex = host.toLowerCase() === this.#apex
    if (type === 'SOA') return 'Sextant makes the SOA record of a zone itself'
    if (type === 'NS' && isApex)
      return 'Sextant makes the NS records of a zone from `nameserver` in the directive kuadrant'
    return RECORD_TYPES.has(type) ? '' : 'a DNSRecord has no records of this type'
  }

  #count(
    key: string,
    { geoCodes = [], isDefault = false }: Routing,
    isOfMany: boolean,
    place: string,
  ): void {
    const group = this.#groups.get(key) ?? { place, located: 0, hasDefault: false, many: 0 }
    group.located += geoCodes.length
    group.hasDefault ||= isDefault
    group.many += isOfMany ? 1 : 0
    this.#groups.set(key, group)
  }

  /** Sets the health check of the host. Returns where the endpoint is probed, if not at its targets and that port. */
  #readCheck(
    set: Mapping,
    host: string,
    targets: readonly string[],
    at: string,
  ): Readonly<Record<string, string>> {
    const id = stringField(set, 'HealthCheckId', new FieldPlace(''))
    if (id === '') return {}
    const check = this.#checks.get(id)
    if (check === undefined) {
      const message = `health check ${id} is in no file: add the output of aws route53 list-health-checks`
      this.#hosts.note(placeAt(at, ['HealthCheckId']), message)
      return {}
    }
    const { found, place } = check
    if ('path' in found) {
      this.#hosts.note(placeAt(place, found.path), `not imported for ${host}: ${found.message}`)
      return {}
    }
    return this.#probe(host, targets, found, place)
  }

  #probe(
    host: string,
    targets: readonly string[],
    { document, port, address, hostName, notes }: Route53Check,
    place: string,
  ): Readonly<Record<string, string>> {
    const own = host.replace(/\.$/, '').toLowerCase()
    const first = this.#checkPorts.get(own) ?? port
    this.#checkPorts.set(own, first)
    this.#hosts.check(host, { ...document, port: first }, place)
    for (const note of notes) this.#hosts.note(place, note)
    if (hostName !== '' && hostName.toLowerCase() !== own)
      this.#hosts.note(place, `probes send the host name ${own}, not ${hostName}`)
    const isTarget = targets.some((target) => isSame(target, address))
    return {
      ...(address === '' || isTarget ? {} : { 'health-address': address }),
      ...(port === first ? {} : { 'health-port': String(port) }),
    }
  }

  /** The health check of a DNSRecord is for all its endpoints. */
  #noteUnchecked(set: Mapping, place: string): void {
    const { Name: name, HealthCheckId: id } = set
    if (typeof name !== 'string' || id !== undefined) return
    if (!this.#checkPorts.has(nameOf(name).replace(/\.$/, '').toLowerCase())) return
    if (!ADDRESS_TYPES.includes(String(set.Type)) && set.Type !== 'CNAME') return
    this.#hosts.note(
      place,
      'has no health check in Route 53; Sextant probes it like the others of its name',
    )
  }
}

/** True for equal addresses, and for equal names. */
function isSame(target: string, address: string): boolean {
  const [one, other] = [scanAddress(target), scanAddress(address)]
  if (one !== undefined && other !== undefined) return Buffer.compare(one.bytes, other.bytes) === 0
  return target.replace(/\.$/, '').toLowerCase() === address.toLowerCase()
}

/** Reads the type, the targets and the TTL. Throws RefusedError. */
function readData(set: Mapping, type: string, place: FieldPlace) {
  if (field(set, 'AliasTarget') !== undefined) return readAlias(set, type, place)
  const values = sequenceField(set, 'ResourceRecords', place)
  const list = place.at('ResourceRecords')
  if (values.length === 0) throw new RefusedError(list, 'the record set has no ResourceRecords')
  const targets = values.map((value, index) => {
    if (!isMapping(value)) throw new RefusedError(list.at(index), 'a value must be a JSON object')
    return targetOf(type, stringField(value, 'Value', list.at(index)))
  })
  const ttl = scalarField(set, 'TTL', place)
  return { type, targets, ttlSeconds: /^\d{1,10}$/.test(ttl) ? Number(ttl) : undefined }
}

/** DNSRecords write names without a final dot. */
function targetOf(type: string, text: string): string {
  const value = decimalOf(text)
  return ['CNAME', 'NS', 'PTR'].includes(type) ? nameOf(value).replace(/\.$/, '') : value
}

/** An ALIAS has both A and AAAA, so that the two sets of Route 53 become one endpoint. */
function readAlias(set: Mapping, type: string, place: FieldPlace) {
  const at = place.at('AliasTarget')
  const target = stringField(mappingField(set, 'AliasTarget', place), 'DNSName', at)
  if (!RECORD_TYPES.has('ALIAS') || !ADDRESS_TYPES.includes(type)) {
    const message = `a DNSRecord has no alias of type ${type}, here to ${target}: write its addresses, or a CNAME`
    throw new RefusedError(at, message)
  }
  return { type: 'ALIAS', targets: [nameOf(target).replace(/\.$/, '')], ttlSeconds: undefined }
}

function placeAt(place: string, path: FieldProblem['path']): string {
  return path.length === 0 ? place : `${place}.${printPath(path)}`
}
