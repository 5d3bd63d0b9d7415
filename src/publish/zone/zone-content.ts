import { InputError } from '../../base/errors.ts'
import { RRType } from '../../dns/iana/types.ts'
import { concatNames, isSubdomain, printName, scanName } from '../../dns/name/name.ts'
import type { LocalExporter } from '../../peering/local-exporter.ts'
import type { Endpoint } from '../../records/dns-record.ts'
import { isLocalZone } from '../../records/local-zone.ts'
import type { StoredRecord } from '../../records/record-source.ts'
import type { ZoneOwnership } from '../../sources/zone-ownership.ts'
import { OPEN } from '../../steering/rules.ts'
import { NO_SETTINGS } from '../build/owner-settings.ts'
import { RecordZone } from '../build/record-zone.ts'
import type { RecordZoneOptions } from '../build/record-zone-options.ts'
import type { PublishOptions, ZoneNameserver } from '../options.ts'
import { SOA_TTL_SECONDS, scanMailbox } from './soa.ts'

/**
 * Creates a zone that contains only the data from the options. `apex`: lower-case
 * wire name. `exporter`: exports whole endpoints in the zone kdrnt.
 */
export function createRecordZone(
  apex: Uint8Array,
  options: PublishOptions,
  parts: Pick<
    RecordZoneOptions,
    'sink' | 'health' | 'onConflict' | 'isComplete' | 'onOut' | 'onChange' | 'onStates'
  > & {
    readonly exporter?: LocalExporter | undefined
  },
): RecordZone {
  const { exporter, ...callbacks } = parts
  const exports: Pick<RecordZoneOptions, 'exportV2' | 'exportObserved'> =
    exporter === undefined
      ? {}
      : {
          exportV2: (...args) => exporter.composeRdata(...args),
          exportObserved: (found) => exporter.composeObservations(found),
        }
  const isLocal = isLocalZone(apex)
  // Peers need all that it has.
  const whole = isLocal ? { allDown: OPEN, answers: undefined } : {}
  return new RecordZone({
    apex,
    isLocalForm: isLocal,
    site: options.site,
    ...exports,
    fixed: options.nameservers.flatMap((server) => composeNameserver(server, apex)),
    defaultNs: endpointOf(apex, RRType.NS, [defaultServer(apex)]),
    defaultAddresses: isLocal ? [] : composeDefaultAddresses(apex, options),
    settings: { ...NO_SETTINGS, ...options.settings, ...whole },
    ...callbacks,
    // The zone of the record itself reports them.
    onStates: isLocal ? undefined : callbacks.onStates,
  })
}

/**
 * True if `zone` has the record (`key`: its `nameKey`). The local form of a record is
 * served independently of the record's own zone.
 */
export function belongs(
  record: StoredRecord,
  zone: { readonly apex: Uint8Array; readonly key: string },
  options: Pick<PublishOptions, 'allowedNamespaces'>,
  ownership: ZoneOwnership,
): boolean {
  if (!isAllowed(record, options)) return false
  return isLocalZone(zone.apex) || ownership.zoneKeyOf(record.packed) === zone.key
}

/** True for a record of a namespace that the options allow. */
export function isAllowed(
  { key }: StoredRecord,
  { allowedNamespaces }: Pick<PublishOptions, 'allowedNamespaces'>,
): boolean {
  return allowedNamespaces?.has(key.slice(0, key.indexOf('/'))) !== false
}

/** MNAME of the SOA: the first name server. */
export function primaryOf(apex: Uint8Array, options: PublishOptions): Uint8Array {
  return options.nameservers[0]?.name ?? defaultServer(apex)
}

/** Returns RNAME of the SOA; warns of an invalid mailbox. */
export function mailboxOf(
  apex: Uint8Array,
  { rname }: PublishOptions,
  warn: (text: string) => void,
): Uint8Array {
  const mailbox = rname === '' ? undefined : scanMailbox(rname)
  if (rname !== '' && mailbox === undefined) {
    warn(`rname "${rname}" is not an e-mail address; hostmaster.${printName(apex)} is used`)
  }
  return mailbox ?? concatNames(scanName('hostmaster.')!, apex) ?? apex
}

/**
 * Returns warnings for addresses that are not served, because no zone contains their
 * name servers.
 */
export function findLostAddresses({ nameservers, zones }: PublishOptions): InputError[] {
  const places = zones.map((zone) => printName(zone)).join(', ')
  return nameservers
    .filter(({ addresses }) => addresses.length > 0)
    .filter(({ name }) => !zones.some((zone) => isSubdomain(name, zone)))
    .map(({ name, position }) => {
      const text = `nameserver ${printName(name)} is not in ${places}, so its addresses are not served; remove them`
      return new InputError(position, text)
    })
}

/** Returns the names of a zone's name servers. */
export function serversOf(
  apex: Uint8Array,
  { nameservers }: PublishOptions,
): readonly Uint8Array[] {
  const names = nameservers.map(({ name }) => name)
  return names.length === 0 ? [defaultServer(apex)] : names
}

function defaultServer(apex: Uint8Array): Uint8Array {
  return concatNames(scanName('ns1.')!, apex) ?? apex
}

/** Without configured name servers, the default one has the addresses that the block listens on. */
function composeDefaultAddresses(
  apex: Uint8Array,
  { nameservers, ownAddresses = [] }: PublishOptions,
): Endpoint[] {
  if (nameservers.length > 0) return []
  return ownAddresses.map(({ family, bytes }) => {
    return endpointOf(defaultServer(apex), family === 1 ? RRType.A : RRType.AAAA, [bytes])
  })
}

/** Returns the NS record of a configured name server, and its glue if its name is in the zone. */
function composeNameserver(server: ZoneNameserver, apex: Uint8Array): Endpoint[] {
  const endpoints = [endpointOf(apex, RRType.NS, [server.name])]
  if (!isSubdomain(server.name, apex)) return endpoints
  for (const { family, bytes } of server.addresses) {
    endpoints.push(endpointOf(server.name, family === 1 ? RRType.A : RRType.AAAA, [bytes]))
  }
  return endpoints
}

function endpointOf(owner: Uint8Array, type: number, rdata: readonly Uint8Array[]): Endpoint {
  const ttlSeconds = SOA_TTL_SECONDS
  return {
    owner,
    type,
    ttlSeconds,
    setIdentifier: '',
    weight: undefined,
    codes: [],
    isDefault: false,
    rdata,
  }
}
