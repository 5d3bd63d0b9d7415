import { basename } from 'node:path'
import { InputError } from '../../base/errors.ts'
import { lowerName, ROOT_NAME, scanName } from '../../dns/name/name.ts'
import { readZoneFiles, type ZoneRecord } from '../bind.ts'
import type { ImportFile, ImportFormat } from '../import-format.ts'
import type { ImportedHosts } from '../imported-hosts.ts'
import { NetClasses } from '../net-classes.ts'
import { hideDynamicRecords, isDynamic } from './dynamic-records.ts'
import { type GeoMap, keyOfList, readGeoMap } from './geo-maps.ts'
import { ResourceFault, Resources, type Stage } from './resources.ts'
import { readServiceType } from './service-types.ts'
import { addPlan, type StageList } from './steering-plan.ts'
import { hashAt, parseVscf, textAt, type VscfHash } from './vscf.ts'

/** The configuration of gdnsd, and its zone files. */
export const GDNSD: ImportFormat = {
  word: 'gdnsd',
  files: 'the file `config`, and then the zone files, named as the zones',
  read: ([config, ...zones], hosts, { zone }) => {
    if (config === undefined) return
    if (zones.length === 0) {
      throw new InputError(undefined, `${config.name}: add the zone files of gdnsd behind it`)
    }
    const reader = new GdnsdImport(config, hosts)
    for (const file of zones) {
      noteSyntax(file, hosts)
      const visible = { ...file, octets: hideDynamicRecords(file.octets) }
      const options = { zone: zone ?? zoneOf(file) }
      readZoneFiles([visible], hosts, options, (record) => {
        if (!isDynamic(record.type)) return false
        reader.add(record)
        return true
      })
    }
    reader.finish()
  },
}

function zoneOf({ name }: ImportFile): Uint8Array {
  const zone = scanName(basename(name).replaceAll('@', '/'), ROOT_NAME)
  if (zone !== undefined) return lowerName(zone)
  throw new InputError(
    { file: name, line: 1 },
    'the name of the file is not a zone; add --zone NAME',
  )
}

/** What zone files of gdnsd mean in another way than those of other servers. */
function noteSyntax({ name, octets }: ImportFile, hosts: ImportedHosts): void {
  const text = octets.toString('latin1')
  if (!/^\$TTL\s/im.test(text))
    hosts.note(`${name}:1`, 'without $TTL, gdnsd gives records 86400 s; add $TTL 86400')
  const special = /(?:^|[\s.])@[ZF]\b/m.exec(text)
  if (special === null) return
  const line = text.slice(0, special.index + 1).split('\n').length
  throw new InputError({ file: name, line }, 'write the names of the zones in place of @Z and @F')
}

class GdnsdImport {
  readonly #file: string
  readonly #hosts: ImportedHosts
  readonly #config: VscfHash
  readonly #nets = new NetClasses()
  readonly #maps = new Map<string, GeoMap>()
  readonly #resources: Resources
  readonly #noted = new Set<string>()
  /** The service types of the resource that is being read. */
  #serviceTypes: { readonly names: readonly string[]; readonly line: number }[] = []

  constructor({ name, octets }: ImportFile, hosts: ImportedHosts) {
    this.#file = name
    this.#hosts = hosts
    this.#config = parseVscf(name, octets.toString('utf8'))
    if (!['options', 'plugins', 'service_types'].some((key) => this.#config.entries.has(key))) {
      const message =
        'has none of options, plugins and service_types: the first file is the configuration'
      throw new InputError({ file: name, line: 1 }, message)
    }
    const note = (line: number, message: string): void => this.#note(line, message)
    const plugins = hashAt(this.#config, 'plugins')
    this.#resources = new Resources(plugins, {
      note,
      monitor: (names, line) => this.#serviceTypes.push({ names, line }),
    })
    for (const [map, value] of hashAt(hashAt(plugins, 'geoip'), 'maps')?.entries ?? []) {
      if (value.kind !== 'hash') continue
      this.#maps.set(map, readGeoMap(map, value, { nets: this.#nets, file: name, note }))
    }
  }

  /** Adds the endpoints of a record `DYNA` or `DYNC`. */
  add(record: ZoneRecord): void {
    const text = Buffer.from(record.rdata).toString('utf8')
    const [, plugin = '', resource = '', datacenter = ''] =
      /^([^!]+)!([^/]+)(?:\/(.+))?$/.exec(text) ?? []
    this.#serviceTypes = []
    try {
      if (plugin === '' && text !== '') throw new ResourceFault('write PLUGIN!RESOURCE', 0)
      this.#addResource(record, plugin, resource, datacenter)
      this.#addChecks(record)
    } catch (error) {
      if (!(error instanceof ResourceFault)) throw error
      const at = error.line === 0 ? '' : ` (${this.#file}:${error.line})`
      this.#hosts.note(record.place, `${text} not imported: ${error.message}${at}`)
    }
  }

  /** Lists the networks. */
  finish(): void {
    for (const { cidr, code, place } of this.#nets.lines())
      this.#hosts.note(place, `add to the directive geoip: net ${cidr} ${code}`)
  }

  #note(line: number, message: string): void {
    const key = `${line} ${message}`
    if (!this.#noted.has(key)) this.#hosts.note(`${this.#file}:${line}`, message)
    this.#noted.add(key)
  }

  #addResource(record: ZoneRecord, plugin: string, resource: string, datacenter: string): void {
    const { ttlSeconds, place } = record
    const host = record.host.replace(/\.$/, '')
    const common = { host, ttlSeconds, place }
    if (plugin === 'geoip' && datacenter === '') {
      addPlan({ ...common, ...this.#geoPlan(resource, place) }, this.#hosts)
      return
    }
    const stages =
      datacenter === ''
        ? this.#resources.stagesOf(plugin, resource, 0)
        : this.#datacenterOf(plugin, resource, datacenter)
    const byName = new Map(this.#usable(stages, place).map((stage) => [stage.name, stage]))
    const byDefault = [...byName.keys()]
    const lists = new Map<string, StageList>()
    addPlan({ ...common, stages: byName, byDefault, lists, locations: new Map() }, this.#hosts)
  }

  #datacenterOf(plugin: string, resource: string, datacenter: string): readonly Stage[] {
    const value = this.#resources.find(plugin, resource)
    const hash = value?.kind === 'hash' ? value : undefined
    const one = hashAt(hash, 'dcmap')?.entries.get(datacenter)
    if (one === undefined) throw new ResourceFault(`no datacenter ${datacenter}`, value?.line ?? 0)
    const outer = [hash, hashAt(hashAt(this.#config, 'plugins'), plugin)]
    return this.#resources.datacenter(datacenter, one, outer)
  }

  /** A name has either one CNAME or addresses: the first stage decides. */
  #usable(stages: readonly Stage[], place: string): Stage[] {
    const isAlias = stages[0]?.groups[0]?.type === 'CNAME'
    return stages.flatMap(({ name, groups }) => {
      const fit = groups.filter(({ type }) => (type === 'CNAME') === isAlias)
      if (fit.length < groups.length) {
        const what = isAlias ? 'addresses beside a CNAME' : 'a CNAME beside addresses'
        this.#hosts.note(place, `${name} not imported: ${what}`)
      }
      return fit.length === 0 ? [] : [{ name, groups: fit }]
    })
  }

  #geoPlan(resource: string, place: string) {
    const value = this.#resources.find('geoip', resource)
    if (value?.kind !== 'hash')
      throw new ResourceFault(`no resource geoip!${resource}`, value?.line ?? 0)
    const name =
      textAt(value, 'map') ?? textAt(hashAt(hashAt(this.#config, 'plugins'), 'geoip'), 'map') ?? ''
    const map = this.#maps.get(name)
    if (map === undefined) throw new ResourceFault(`no map ${JSON.stringify(name)}`, value.line)
    const dcmap = hashAt(value, 'dcmap')
    const known = map.datacenters.filter((one) => dcmap?.entries.has(one) === true)
    const all = this.#usable(
      known.flatMap((one) => this.#datacenterOf('geoip', resource, one)),
      place,
    )
    const stages = new Map(all.map((stage) => [stage.name, stage]))
    /** The stages of each datacenter: its own name, and those behind it. */
    const stagesOf = (datacenter: string): StageList => {
      return [...stages.keys()].filter(
        (one) => one === datacenter || (one.startsWith(`${datacenter}-`) && !known.includes(one)),
      )
    }
    const skips = textAt(value, 'skip_first') === 'true'
    const listOf = (list: readonly string[]): StageList => {
      return (skips && list.length > 1 ? list.slice(1) : list).flatMap(stagesOf)
    }
    const { byDefault, codes, netLists, locations } = map
    const lists = new Map<string, StageList>()
    for (const list of netLists) {
      for (const code of this.#nets.codesOf(name, keyOfList(list))) lists.set(code, listOf(list))
    }
    for (const [code, list] of codes) {
      if (list !== 'auto') lists.set(code, listOf(list))
      else if (byDefault !== 'auto')
        this.#hosts.note(place, `auto for ${code} only has no equivalent`)
    }
    return {
      stages,
      byDefault: listOf(byDefault === 'auto' ? map.datacenters : byDefault),
      lists,
      locations: byDefault === 'auto' ? placesOf(stages, locations) : new Map<string, string>(),
    }
  }

  #addChecks({ host, place }: ZoneRecord): void {
    const own = host.replace(/\.$/, '')
    const found = this.#serviceTypes.flatMap(({ names }) => names)
    for (const name of new Set(found)) {
      const { check, notes } = readServiceType(name, hashAt(this.#config, 'service_types'), own)
      for (const note of notes) this.#hosts.note(place, note)
      if (check !== undefined) this.#hosts.check(own, check, place)
    }
  }
}

/** The places of the stages that a distance chooses: the first one of each datacenter. */
function placesOf(
  stages: ReadonlyMap<string, Stage>,
  locations: ReadonlyMap<string, string>,
): Map<string, string> {
  return new Map([...locations].filter(([name]) => stages.has(name)))
}
