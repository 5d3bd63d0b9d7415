import { findLeaves, probeName } from '../../health/record-probes.ts'
import { type ApiObject, textOf } from '../../kube/api.ts'
import { keyOf } from '../../kube/object-key.ts'
import { API_VERSION } from '../../records/dns-record.ts'
import { HEALTH_CHECK } from '../../records/validate/known-fields.ts'
import { isDeleting, isSame, itemsOf, labelOf, mappingOf, metadataOf } from '../record/fields.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { shortHash } from '../record/short-hash.ts'

export const PROBE_KIND = 'DNSHealthCheckProbe'
const PROBE_OWNER_LABEL = 'kuadrant.io/health-probes-owner'
/**
 * Kuadrant's operator adds this finalizer to probes in order to stop their workers. Ours stop
 * without it.
 */
export const PROBE_FINALIZER = 'kuadrant.io/dns-health-check-probe'
/** Longest name (RFC 1123 subdomain). */
const NAME_CHARACTERS_MAX = 253
/** Longest value of a label. */
const LABEL_CHARACTERS_MAX = 63
/** Fields that a probe copies from the health check of its record. */
const COPIED = Object.keys(HEALTH_CHECK)

/**
 * The DNSHealthCheckProbes for a DNSRecord's health check, one for each of its addresses, in the
 * form to apply. Empty for a record that is rejected, being deleted or derived. Empty also for an
 * HTTP check of a wildcard host, which would have no host name to send.
 */
export function desiredProbes(
  record: DnsRecordView,
  allowInsecureCertificate: boolean,
): readonly ApiObject[] {
  const { resource, name, uid, spec, rootHost } = record
  if (resource.kind !== 'record' || resource.record.healthCheck === undefined) return []
  const { namespace, endpoints } = resource.record
  const check = mappingOf(spec, 'healthCheck')
  const copied = COPIED.filter((field) => check[field] !== undefined)
  // A TCP check sends no host name, and the field does not allow a wildcard.
  const hostname = rootHost.startsWith('*.') ? {} : { hostname: rootHost }
  return findLeaves(endpoints).map(({ address, probeAt }) => ({
    apiVersion: API_VERSION,
    kind: PROBE_KIND,
    metadata: {
      name: probeName(name, address),
      namespace,
      labels: { [PROBE_OWNER_LABEL]: ownerLabel(name, uid) },
      ownerReferences: [ownerReference(name, uid)],
    },
    spec: {
      ...Object.fromEntries(copied.map((field) => [field, check[field]!])),
      ...(probeAt === undefined || probeAt.port === 0 ? {} : { port: probeAt.port }),
      ...hostname,
      address,
      ...(probeAt === undefined || probeAt.address === '' ? {} : { testAddress: probeAt.address }),
      allowInsecureCertificate,
    },
  }))
}

/**
 * `desired` with new names for probes whose name is already used: by a probe of another record
 * (record `a` with address `b-c`, record `a-b` with address `c`), or by another one of these. A
 * probe keeps its new name.
 */
export function withFreeNames(
  { name, uid }: DnsRecordView,
  desired: readonly ApiObject[],
  find: (key: string) => ApiObject | undefined,
): readonly ApiObject[] {
  const names = new Set<string>()
  return desired.map((wanted) => {
    const other = withOtherName(wanted, name)
    const kept = find(keyOf(other))
    const owner = controllerOf(find(keyOf(wanted)))
    const isTaken = names.has(keyOf(wanted)) || (owner !== undefined && owner.name !== name)
    const isKept = kept !== undefined && isControlledBy(kept, uid)
    const chosen = isTaken || isKept ? other : wanted
    names.add(keyOf(chosen))
    return chosen
  })
}

function withOtherName(probe: ApiObject, recordName: string): ApiObject {
  const metadata = metadataOf(probe)
  const hash = shortHash(`${recordName} ${textOf(probe.spec, 'address')}`)
  const front = textOf(metadata, 'name').slice(0, NAME_CHARACTERS_MAX - hash.length - 1)
  return { ...probe, metadata: { ...metadata, name: `${front.replace(/[.-]+$/, '')}-${hash}` } }
}

/** The changes after which the probes of a record are the desired ones. */
interface ProbePlan {
  readonly apply: readonly ApiObject[]
  readonly remove: readonly ApiObject[]
  /** Names that probes of other owners have. */
  readonly taken: readonly string[]
}

/**
 * Plans the changes from existing to desired probes. `present`: all probes of the record, and all
 * probes with a desired name. Probes that another author made, for this record or another, are not
 * touched.
 */
export function planProbes(
  { uid }: DnsRecordView,
  desired: readonly ApiObject[],
  present: readonly ApiObject[],
): ProbePlan {
  const known = new Map(present.map((probe) => [keyOf(probe), probe]))
  const apply: ApiObject[] = []
  const taken: string[] = []
  for (const wanted of desired) {
    const existing = known.get(keyOf(wanted))
    known.delete(keyOf(wanted))
    if (existing !== undefined && !isControlledBy(existing, uid)) taken.push(keyOf(wanted))
    else if (existing === undefined || !isInPlace(existing, wanted)) apply.push(wanted)
  }
  const remove = [...known.values()].filter((probe) => isControlledBy(probe, uid))
  return { apply, remove: remove.filter((probe) => !isDeleting(probe)), taken }
}

/** True if a DNSRecord controls the probe, which means that an operator created it. */
export function isControlled(probe: ApiObject): boolean {
  return controllerOf(probe) !== undefined
}

/** The ownerReference to the DNSRecord that controls a probe. */
function controllerOf(probe: ApiObject | undefined): ApiObject | undefined {
  return itemsOf(metadataOf(probe ?? {}), 'ownerReferences').find(
    (one) => one.kind === 'DNSRecord' && one.controller === true,
  )
}

function isControlledBy(probe: ApiObject, uid: string): boolean {
  return uid !== '' && textOf(controllerOf(probe), 'uid') === uid
}

function isInPlace(existing: ApiObject, wanted: ApiObject): boolean {
  const hasLabel = labelOf(existing, PROBE_OWNER_LABEL) === labelOf(wanted, PROBE_OWNER_LABEL)
  return hasLabel && isSame(existing.spec, wanted.spec)
}

function ownerLabel(name: string, uid: string): string {
  return name.length > LABEL_CHARACTERS_MAX ? shortHash(uid) : name
}

function ownerReference(name: string, uid: string): ApiObject {
  return {
    apiVersion: API_VERSION,
    kind: 'DNSRecord',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  }
}
