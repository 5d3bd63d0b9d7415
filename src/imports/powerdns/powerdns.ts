import { RRType } from '../../dns/iana/index.ts'
import { printType } from '../../dns/iana/types.ts'
import { readZoneFiles, type ZoneRecord } from '../bind.ts'
import type { ImportFormat, ImportOptions } from '../import-format.ts'
import { endpointDocument } from '../imported-endpoint.ts'
import type { ImportedHosts } from '../imported-hosts.ts'
import { type LuaCheck, type LuaChoice, readChoices } from './lua-choice.ts'
import { hideLuaRecords, LUA_TYPE, readLuaRecord } from './lua-records.ts'
import { LuaFault, parseLuaScript } from './lua-syntax.ts'

/** Zone files with LUA records, of `pdnsutil list-zone` or of the BIND backend. */
export const POWERDNS: ImportFormat = {
  word: 'powerdns',
  files: 'zone files with LUA records, also of `pdnsutil list-zone`',
  read: (files, hosts, options) => {
    const visible = files.map((file) => ({ ...file, octets: hideLuaRecords(file.octets) }))
    readZoneFiles(visible, hosts, options, (record) => {
      if (record.type !== LUA_TYPE) return false
      addLuaRecord(record, hosts, options.locate)
      return true
    })
  },
}

type Locate = ImportOptions['locate']

/** `index`: its place among the choices of the script. `places`: where its targets are. */
interface PlacedChoice extends LuaChoice {
  readonly index: number
  readonly places: ReadonlyMap<string, string>
}

function addLuaRecord(record: ZoneRecord, hosts: ImportedHosts, locate: Locate): void {
  const { rdata, place } = record
  const host = record.host.replace(/\.$/, '')
  const { type, script } = readLuaRecord(rdata)
  const what = `LUA ${printType(type)} of ${host}`
  try {
    const choices = readChoices(parseLuaScript(script))
    for (const [i, choice] of choices.entries()) {
      const given = choice.isNearest ? placesOf(choice, locate) : new Map<string, string>()
      addChoice({ ...record, host, type }, { ...choice, index: i, places: given }, hosts)
    }
    for (const note of choices.flatMap((choice) => choice.notes)) hosts.note(place, note)
    if (choices.length > 0 && choices.every(({ codes }) => codes.length > 0)) {
      hosts.note(
        place,
        `${what} has no default: PowerDNS sends clients elsewhere an empty answer, Sextant one of all endpoints`,
      )
    }
  } catch (error) {
    if (!(error instanceof LuaFault)) throw error
    hosts.note(place, `${what} not imported: ${error.message}`)
  }
}

/** Returns where the targets are, by target. */
function placesOf({ targets }: LuaChoice, locate: Locate): ReadonlyMap<string, string> {
  const found = targets
    .flatMap((one) => one.targets)
    .map((target) => [target, locate?.(target) ?? ''] as const)
  return new Map(found.filter(([, location]) => location !== ''))
}

/** `type`: of the records that the script returns. */
function addChoice(
  { host, type, ttlSeconds, place }: ZoneRecord,
  choice: PlacedChoice,
  hosts: ImportedHosts,
): void {
  const { codes, index, places, check, isSticky, isNearest, answers } = choice
  const isSteered = codes.length > 0 || index > 0 || choice.targets.length > 1
  for (const [i, { targets, weight }] of choice.targets.entries()) {
    const name = codes.length === 0 ? 'others' : codes.join('-')
    const endpoint = {
      ...{ host, type: printType(type), ttlSeconds, weight },
      targets: targets.map((one) => printTarget(type, one)),
      setIdentifier: isSteered ? `${name}-${i + 1}` : '',
      geoCodes: codes,
      isDefault: index > 0 && codes.length === 0,
      location: places.get(targets[0]!),
    }
    hosts.add(endpointDocument(endpoint), place)
  }
  if (isSticky) hosts.annotate(host, 'sextant.io/sticky', 'true', place)
  if (answers > 0) hosts.annotate(host, 'sextant.io/answers', String(answers), place)
  const unplaced = choice.targets.filter(({ targets }) => !places.has(targets[0]!))
  if (isNearest && unplaced.length > 0) {
    const targets = unplaced.flatMap((one) => one.targets).join(', ')
    hosts.note(place, `${host}: add the property location to ${targets}, or use --database FILE`)
  }
  if (check !== undefined) addCheck(host, check, place, hosts)
}

/** DNSRecords write a TXT target in quotes if it has spaces. */
function printTarget(type: number, target: string): string {
  return type === RRType.TXT ? JSON.stringify(target) : target
}

function addCheck(host: string, check: LuaCheck, place: string, hosts: ImportedHosts): void {
  const { options } = check
  const [minimumFailures = '', interval = '', status = '', body = ''] = [
    'minimumFailures',
    'interval',
    'httpcode',
    'stringmatch',
  ].map((name) => options.get(name) ?? '')
  for (const name of ['timeout', 'useragent', 'source', 'failOnIncompleteCheck', 'byteslimit']) {
    if (options.has(name))
      hosts.note(place, `${host}: option ${name} of the check has no equivalent`)
  }
  const failures = Number(minimumFailures)
  const common = {
    interval: `${Number(interval) || 5}s`,
    // An address is down after one failure more than that.
    failureThreshold: Number.isInteger(failures) && failures > 1 ? failures - 1 : 1,
  }
  const { url } = check
  if (url === undefined) {
    hosts.check(host, { protocol: 'TCP', port: check.port, ...common }, place)
    return
  }
  if (url.hostname !== host) {
    hosts.note(place, `${host}: probes send this host name, not ${url.hostname}`)
  }
  const isTls = url.protocol === 'https:'
  const health = {
    protocol: isTls ? 'HTTPS' : 'HTTP',
    port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
    path: `${url.pathname}${url.search}`,
    ...common,
    expectedStatus: status === '' ? '200' : status,
    ...(body === '' ? {} : { expectedBody: body }),
  }
  hosts.check(host, health, place)
}
