import type { ApiObject } from '../../kube/api.ts'
import { TARGETS_MAX } from '../../records/dns-record.ts'
import { shortHash } from '../record/short-hash.ts'
import { endpointKey, type SpecEndpoint } from '../record/spec-endpoint.ts'

/**
 * Ownership of the endpoints of an authoritative record: TXT endpoints beside them, one for each
 * owner.
 *
 *     kuadrant-<hash of the owner>-<type>-<dnsName>    `*` at the front of the name is `wildcard`
 *     "heritage=external-dns,external-dns/owner=<id>,…,external-dns/version=1"
 *
 * Further keys are `group`, `targets` (those of the owner) and two that only Sextant writes, `ttl`
 * and `cluster`. An owner's contribution must be known when another owner is removed; the cluster
 * of an owner must be known after the owner is gone. Before v0.12 of Kuadrant's operator the name
 * had no hash, and the owners were joined with `&&`.
 */
const HERITAGE = 'heritage=external-dns'
const KEY_PREFIX = 'external-dns/'
const LIST_SEPARATOR = '&&'
const VERSION = '1'
/** Names in the registry, with or without the hash. */
const NAME = /^kuadrant-(?:([0-9a-z]{8})-)?([a-z]+)-(.+)$/
/** Characters that would change how a value is parsed. */
const UNFIT = /[,"\\]|&&/

/** One owner's part in an endpoint. */
export interface RegistryNote {
  readonly owner: string
  /** '' = none. */
  readonly group: string
  /** Short id of the owner's cluster; '' = the cluster that holds the note, or unknown. */
  readonly cluster: string
  /** What the owner contributed; undefined = not known. */
  readonly targets: readonly string[] | undefined
  readonly ttlSeconds: number | undefined
  /** The TXT endpoint that holds the note; undefined = not written yet. */
  readonly note: Note | undefined
}

/** A TXT endpoint of the registry. */
export interface Note {
  readonly object: ApiObject
  /** All owners that it lists: notes in the old form list several. */
  readonly owners: readonly string[]
}

/** A note and the endpoint that it belongs to. */
interface FoundNote extends RegistryNote {
  /** `endpointKey` of the endpoint. */
  readonly key: string
}

/** Composes the TXT endpoint for a registry note. */
export function composeNote(endpoint: SpecEndpoint, note: RegistryNote): ApiObject {
  const { owner, group, cluster, targets, ttlSeconds } = note
  const { dnsName, recordType, setIdentifier, providerSpecific } = endpoint
  const isReported = targets !== undefined && !targets.some((target) => UNFIT.test(target))
  const values: [string, string][] = [
    ...(cluster === '' ? [] : [['cluster', cluster] as [string, string]]),
    ...(group === '' ? [] : [['group', group] as [string, string]]),
    ['owner', owner],
    ...(isReported ? [['targets', targets.join(LIST_SEPARATOR)] as [string, string]] : []),
    ...(ttlSeconds === undefined ? [] : [['ttl', String(ttlSeconds)] as [string, string]]),
    ['version', VERSION],
  ]
  const text = [HERITAGE, ...values.map(([key, value]) => `${KEY_PREFIX}${key}=${value}`)]
  const name = dnsName.replace(/^\*/, 'wildcard')
  return {
    dnsName: `kuadrant-${shortHash(owner)}-${recordType.toLowerCase()}-${name}`,
    recordType: 'TXT',
    targets: [`"${text.join(',')}"`],
    ...(setIdentifier === '' ? {} : { setIdentifier }),
    ...(providerSpecific.length === 0 ? {} : { providerSpecific }),
  }
}

/** What a TXT endpoint says, apart from the endpoint that it belongs to. */
interface ScannedNote extends Omit<FoundNote, 'key' | 'owner'> {
  readonly type: string
  /** With `wildcard` in place of `*`. */
  readonly name: string
  readonly note: Note
}

/** Objects of the API do not change, and each reconcile reads the notes of all owners. */
const scannedNotes = new WeakMap<ApiObject, ScannedNote | undefined>()

/**
 * The notes that a TXT endpoint holds: one, or one for each owner in the old form. Empty if the
 * endpoint is not part of the registry. `wildcards`: names, with `wildcard` in place of the `*`,
 * for which an endpoint with `*` exists.
 */
export function scanNotes(endpoint: SpecEndpoint, wildcards: ReadonlySet<string>): FoundNote[] {
  if (endpoint.recordType !== 'TXT') return []
  const { object, setIdentifier } = endpoint
  if (!scannedNotes.has(object)) scannedNotes.set(object, scanNote(endpoint))
  const scanned = scannedNotes.get(object)
  if (scanned === undefined) return []
  const { type, name, ...facts } = scanned
  const dnsName = wildcards.has(name) ? name.replace(/^wildcard/, '*') : name
  const key = endpointKey({ dnsName, recordType: type, setIdentifier })
  return facts.note.owners.map((owner) => ({ owner, key, ...facts }))
}

function scanNote({ dnsName, targets, object }: SpecEndpoint): ScannedNote | undefined {
  const parts = NAME.exec(dnsName)
  const values = scanValues(targets)
  if (parts === null || values === undefined) return undefined
  const [, hash, type, name] = parts
  const owners = splitList(values.get('owner') ?? '')
  const ttl = values.get('ttl') ?? ''
  const noted = values.get('targets')
  const mine = owners.filter((owner) => hash === undefined || shortHash(owner) === hash)
  return {
    type: type!.toUpperCase(),
    name: name!,
    group: values.get('group') ?? '',
    cluster: values.get('cluster') ?? '',
    targets: noted === undefined || owners.length > 1 ? undefined : splitList(noted),
    ttlSeconds: /^\d{1,10}$/.test(ttl) ? Number(ttl) : undefined,
    note: { object, owners: mine },
  }
}

/**
 * Merges the values of all targets; the last one wins. undefined = one of the targets is not a
 * registry note.
 */
function scanValues(targets: readonly string[]): Map<string, string> | undefined {
  const values = new Map<string, string>()
  if (targets.length === 0) return undefined
  for (const target of targets) {
    const [heritage, ...rest] = target.replace(/^"|"$/g, '').split(',')
    if (heritage !== HERITAGE) return undefined
    for (const pair of rest) {
      const equals = pair.indexOf('=')
      if (!pair.startsWith(KEY_PREFIX) || equals < 0) continue
      values.set(pair.slice(KEY_PREFIX.length, equals), pair.slice(equals + 1))
    }
  }
  return values
}

function splitList(text: string): string[] {
  return text.split(LIST_SEPARATOR, TARGETS_MAX).filter((part) => part !== '')
}

/** Joins owners in the form of the endpoint's label. */
export function joinOwners(owners: readonly string[]): string {
  return [...new Set(owners)].sort().join(LIST_SEPARATOR)
}

/** True for a TXT endpoint of the registry, whichever operator wrote it. */
export function isRegistryNote(endpoint: SpecEndpoint): boolean {
  return scanNotes(endpoint, new Set()).length > 0
}
