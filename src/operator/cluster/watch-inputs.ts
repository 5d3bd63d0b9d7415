import { type ApiObject, type JsonValue, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import { authoritativeKey } from '../delegation/authoritative-record.ts'
import type { OwnerIndex } from '../delegation/owner-index.ts'
import { isReadyForDelegation } from '../delegation/remote-statuses.ts'
import { SourceIndex } from '../delegation/source-index.ts'
import { isDefaultProvider } from '../provider/secret-cache.ts'
import { isSame, metadataOf } from '../record/fields.ts'
import { DnsRecordView } from '../record/record-view.ts'
import { unservedZoneOf } from '../zones/zone-state.ts'
import type { ObjectCache } from './object-cache.ts'

interface TriggerParts {
  readonly records: Informer
  readonly secrets: Informer
  readonly cache: ObjectCache
  readonly owners: Pick<OwnerIndex, 'onGone'>
  /** Calls back with a record when another one that shares a name with it changes; missing = never. */
  readonly onNames?: (listener: (key: string) => void) => () => void
  /** The record is to be reconciled. */
  readonly onEvent: (key: string) => void
  /** A health check of a record that delegates to this authoritative record may have changed. */
  readonly onCheck: (authoritativeKey: string) => void
}

/**
 * Requests a reconcile of a record when it changes, when a record derived from it changes, or when
 * the Secrets of its namespace change. Starts with all existing records. The returned function
 * unsubscribes.
 */
export function watchInputs(parts: TriggerParts): () => void {
  const { records, secrets, cache, owners, onNames = () => () => {}, onEvent, onCheck } = parts
  const sources = new SourceIndex()
  const notify = (record: DnsRecordView): void => {
    for (const key of record.role === 'derived' ? ownersOf(record) : [record.key]) onEvent(key)
    if (record.role === 'authoritative') for (const key of sources.of(record.key)) onEvent(key)
  }
  // The check is no part of the authoritative record, which is not written when the check changes.
  const noteCheck = (record: DnsRecordView, check?: JsonValue, before?: JsonValue): void => {
    if (record.role !== 'delegating' || isSame(check, before)) return
    onCheck(authoritativeKey(record))
  }
  // An authoritative record that one source wrote is news to its other sources. A list contains
  // only the final state, which may include changes of others from before our write.
  const isKnown = ({ key, object, role }: DnsRecordView, isListed: boolean): boolean =>
    !isListed && cache.isEcho(key, object) && role !== 'authoritative'
  const endRecords = records.subscribe({
    onAdd: (_, object, isListed) => {
      const record = new DnsRecordView(object)
      sources.add(record)
      noteCheck(record, record.spec.healthCheck)
      if (!isKnown(record, isListed)) notify(record)
    },
    onUpdate: (_, object, beforeObject, isListed) => {
      const [record, before] = [new DnsRecordView(object), new DnsRecordView(beforeObject)]
      sources.remove(before)
      sources.add(record)
      noteCheck(record, record.spec.healthCheck, before.spec.healthCheck)
      if (isChanged(record, before) && !isKnown(record, isListed)) notify(record)
    },
    onDelete: (_, before) => {
      const record = new DnsRecordView(before)
      sources.remove(record)
      noteCheck(record, undefined, record.spec.healthCheck)
      notify(record)
    },
  })
  const endOwners = owners.onGone((key) => {
    onEvent(key)
    for (const one of sources.of(key)) onEvent(one)
  })
  // What another record keeps an authoritative record from is news to its sources.
  const endNames = onNames((key) => {
    for (const one of sources.of(key)) onEvent(one)
  })
  let isBeginning = true
  const notifyUsers = (secret: ApiObject): void => {
    if (!isBeginning) for (const key of usersOf(secret, records)) onEvent(key)
  }
  const endSecrets = secrets.subscribe({
    onAdd: (_, secret) => notifyUsers(secret),
    onUpdate: (_, secret, before) => {
      if (isSameProvider(secret, before)) return
      notifyUsers(before)
      notifyUsers(secret)
    },
    onDelete: (_, before) => notifyUsers(before),
  })
  isBeginning = false
  return () => {
    endRecords()
    endSecrets()
    endOwners()
    endNames()
  }
}

/** Keys of the records that a record was derived from. */
function ownersOf({ namespace, ownerReferences }: DnsRecordView): readonly string[] {
  return ownerReferences
    .filter(({ kind }) => kind === 'DNSRecord')
    .map(({ name }) => `${namespace}/${name}`)
}

/** Fields of `metadata` that affect a reconcile. */
const METADATA = [
  'generation',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
  'deletionTimestamp',
]

/**
 * A record's status is ignored: this operator writes it, or it does not concern us. The reports
 * between clusters in it, the group, and a zone that no nameserver serves are the exception.
 */
function isChanged(record: DnsRecordView, before: DnsRecordView): boolean {
  const [metadata, metadataBefore] = [metadataOf(record.object), metadataOf(before.object)]
  return (
    METADATA.some((name) => !isSame(metadata[name], metadataBefore[name])) ||
    isReadyForDelegation(record) !== isReadyForDelegation(before) ||
    !isSame(record.status.group, before.status.group) ||
    unservedZoneOf(record) !== unservedZoneOf(before) ||
    !isSame(record.status.remoteRecordStatuses, before.status.remoteRecordStatuses)
  )
}

function isSameProvider(secret: ApiObject, before: ApiObject): boolean {
  const isEqual = (name: string): boolean => isSame(secret[name], before[name])
  return (
    isEqual('type') && isEqual('data') && isDefaultProvider(secret) === isDefaultProvider(before)
  )
}

/** Keys of the records whose provider is, or may be, the Secret. */
function usersOf(secret: ApiObject, records: Informer): readonly string[] {
  const [namespace, name] = [textOf(secret.metadata, 'namespace'), textOf(secret.metadata, 'name')]
  const isDefault = isDefaultProvider(secret)
  const keys: string[] = []
  for (const object of records.objects()) {
    if (textOf(object.metadata, 'namespace') !== namespace) continue
    const { key, role, providerName } = new DnsRecordView(object)
    const isUser = providerName === name || (providerName === '' && isDefault)
    if (isUser && role !== 'derived') keys.push(key)
  }
  return keys
}
