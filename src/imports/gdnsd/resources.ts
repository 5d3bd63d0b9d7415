import { scanAddress } from '../../dns/text/address.ts'
import { hashAt, textAt, textsOf, type Vscf, type VscfHash } from './vscf.ts'

/** Records of one type that are answered together. */
export interface Group {
  readonly type: 'A' | 'AAAA' | 'CNAME'
  readonly targets: readonly string[]
  readonly weight?: number
}

/** What is served as long as any of its groups is up; then the next stage is. */
export interface Stage {
  readonly name: string
  readonly groups: readonly Group[]
}

/** Why a resource is not imported. */
export class ResourceFault extends Error {
  readonly line: number

  constructor(message: string, line: number) {
    super(message)
    this.name = 'ResourceFault'
    this.line = line
  }
}

/** What a resource becomes, besides its stages. */
interface ResourceNotes {
  note(line: number, message: string): void
  /** The service types that monitor the resource, the innermost first. */
  monitor(serviceTypes: readonly string[], line: number): void
}

/** Settings of resources, which are no labels. */
const SETTINGS: ReadonlySet<string> = new Set([
  ...['service_types', 'multi', 'up_thresh', 'plugin', 'ignore_health', 'map', 'skip_first'],
  ...['datacenters', 'dcmap', 'resources', 'undefined_datacenters_ok', 'maps'],
])
/** Resources that refer to each other in a circle end here. */
const DEPTH_MAX = 8

/** Reads resources of all plugins except geoip, and the datacenters of geoip. */
export class Resources {
  readonly #plugins: VscfHash | undefined
  readonly #notes: ResourceNotes

  constructor(plugins: VscfHash | undefined, notes: ResourceNotes) {
    this.#plugins = plugins
    this.#notes = notes
  }

  /** The configuration of a resource; undefined = it is missing. */
  find(plugin: string, name: string): Vscf | undefined {
    const hash = hashAt(this.#plugins, plugin)
    return (hashAt(hash, 'resources') ?? hash)?.entries.get(name)
  }

  /** Returns the stages of `PLUGIN!RESOURCE`. Throws ResourceFault. */
  stagesOf(plugin: string, name: string, line: number, depth = 0): readonly Stage[] {
    const value = this.find(plugin, name)
    if (value === undefined) throw new ResourceFault(`no resource ${plugin}!${name}`, line)
    return this.stages(plugin, name, value, [hashAt(this.#plugins, plugin)], depth)
  }

  /** `outer`: hashes whose settings are inherited, the innermost first. */
  stages(
    plugin: string,
    name: string,
    value: Vscf,
    outer: readonly (VscfHash | undefined)[],
    depth = 0,
  ): readonly Stage[] {
    if (depth > DEPTH_MAX) throw new ResourceFault('resources refer to each other', value.line)
    if (value.kind === 'scalar' && value.text.startsWith('%')) {
      const [of = '', resource = ''] = value.text.slice(1).split('!')
      return this.stagesOf(of, resource, value.line, depth + 1)
    }
    if (value.kind !== 'hash') {
      this.#monitor(outer, value.line)
      return [{ name, groups: groupsOf(textsOf(value), value.line) }]
    }
    const scope = [value, ...outer]
    if (plugin === 'simplefo') return this.#simplefo(name, value, scope)
    if (plugin === 'metafo') return this.#metafo(value, scope, depth)
    if (plugin === 'weighted' || plugin === 'multifo') {
      const families = [value.entries.get('addrs_v4'), value.entries.get('addrs_v6')]
      const parts = families.filter((part): part is Vscf => part !== undefined)
      const hashes = parts.length === 0 ? [value] : parts
      const groups = hashes.flatMap((part) => this.#groups(plugin, part, [part, ...scope]))
      return [{ name, groups }]
    }
    throw new ResourceFault(`plugin ${plugin} has no equivalent`, value.line)
  }

  /** `value`: of a datacenter. */
  datacenter(name: string, value: Vscf, outer: readonly (VscfHash | undefined)[], depth = 0) {
    const plugin =
      settingOf('plugin', value.kind === 'hash' ? [value, ...outer] : outer) ?? 'multifo'
    const stages = this.stages(plugin, name, value, outer, depth + 1)
    return stages.map((stage, i) =>
      i === 0 ? { ...stage, name } : { ...stage, name: `${name}-${stage.name}` },
    )
  }

  #metafo(value: VscfHash, scope: readonly (VscfHash | undefined)[], depth: number): Stage[] {
    const dcmap = hashAt(value, 'dcmap')
    const datacenters = textsOf(value.entries.get('datacenters'))
    const first = textAt(value, 'skip_first') === 'true' && datacenters.length > 1 ? 1 : 0
    return datacenters.slice(first).flatMap((name) => {
      const one = dcmap?.entries.get(name)
      if (one === undefined) throw new ResourceFault(`dcmap has no ${name}`, value.line)
      // Its own plugin does not pass to the datacenters.
      return this.datacenter(name, one, scope.map(withoutPlugin), depth)
    })
  }

  #simplefo(name: string, value: VscfHash, scope: readonly (VscfHash | undefined)[]): Stage[] {
    const parts = [hashAt(value, 'addrs_v4'), hashAt(value, 'addrs_v6')]
    const families = parts.filter((part) => part !== undefined)
    const hashes = families.length === 0 ? [value] : families
    for (const part of hashes) this.#monitor([part, ...scope], part.line)
    return ['primary', 'secondary'].map((key) => {
      const texts = hashes.flatMap((part) => textsOf(part.entries.get(key)))
      if (texts.length === 0) throw new ResourceFault(`${name} has no ${key}`, value.line)
      return { name: key, groups: groupsOf(texts, value.line) }
    })
  }

  #groups(plugin: string, value: Vscf, scope: readonly (Vscf | undefined)[]): Group[] {
    const hashes = scope.filter((one) => one?.kind === 'hash')
    this.#monitor(hashes, value.line)
    if (value.kind !== 'hash') return groupsOf(textsOf(value), value.line)
    const members = [...value.entries].filter(([key]) => !SETTINGS.has(key))
    if (plugin === 'multifo') {
      return groupsOf(
        members.flatMap(([, member]) => textsOf(member)),
        value.line,
      )
    }
    const groups = members.map(([, member]) => weightedGroup(member))
    const isMulti = settingOf('multi', hashes) === 'true'
    if (!isMulti) return groups
    if (new Set(groups.map(({ weight }) => weight)).size > 1)
      this.#notes.note(
        value.line,
        'multi with different weights has no equivalent: all are returned',
      )
    return groupsOf(
      groups.flatMap(({ targets }) => targets),
      value.line,
    )
  }

  #monitor(scope: readonly (VscfHash | undefined)[], line: number): void {
    const found = scope.find((hash) => hash?.entries.has('service_types') === true)
    this.#notes.monitor(textsOf(found?.entries.get('service_types')), line)
  }
}

function withoutPlugin(hash: VscfHash | undefined): VscfHash | undefined {
  if (hash === undefined) return undefined
  const entries = [...hash.entries].filter(([key]) => key !== 'plugin')
  return { ...hash, entries: new Map(entries) }
}

/** The innermost value of a setting. */
function settingOf(name: string, scope: readonly (VscfHash | undefined)[]): string | undefined {
  return textAt(
    scope.find((hash) => hash?.entries.has(name) === true),
    name,
  )
}

/** `[TARGET, WEIGHT]`, or a group of these, whose members are returned together. */
function weightedGroup(member: Vscf): Group {
  if (member.kind === 'hash') {
    const parts = [...member.entries.values()].map(weightedGroup)
    const weight = parts.reduce((sum, part) => sum + (part.weight ?? 0), 0)
    const [group] = groupsOf(
      parts.flatMap(({ targets }) => targets),
      member.line,
    )
    return { ...group!, weight }
  }
  const [target = '', weight = ''] = textsOf(member)
  if (!/^\d{1,9}$/.test(weight)) {
    throw new ResourceFault('a member of weighted is [TARGET, WEIGHT]', member.line)
  }
  return { ...groupsOf([target], member.line)[0]!, weight: Number(weight) }
}

/** One group for each type of the texts: addresses, or one name. */
function groupsOf(texts: readonly string[], line: number): Group[] {
  if (texts.length === 0) throw new ResourceFault('the resource is empty', line)
  const typeOf = (text: string): Group['type'] => {
    const family = scanAddress(text)?.family
    return family === undefined ? 'CNAME' : family === 1 ? 'A' : 'AAAA'
  }
  const types = [...new Set(texts.map(typeOf))]
  return types.map((type) => {
    const targets = texts.filter((text) => typeOf(text) === type)
    return { type, targets: targets.map((text) => text.replace(/(.)\.$/, '$1')) }
  })
}
