import { type ApiObject, type JsonValue, textOf } from '../../kube/api.ts'
import type { Informer } from '../../kube/informer.ts'
import type { OwnerIndex } from '../delegation/owner-index.ts'
import { isReadyForDelegation } from '../delegation/remote-statuses.ts'
import { SourceIndex } from '../delegation/source-index.ts'
import { isAuthoritative, isDerived } from '../plan/decide.ts'
import { isDefaultProvider } from '../provider/secret-cache.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from '../record/object.ts'
import type { RecordCache } from './record-cache.ts'

export interface TriggerParts {
  readonly records: Informer
  readonly secrets: Informer
  readonly cache: RecordCache
  readonly owners: Pick<OwnerIndex, 'onGone'>
  /** The record is to be reconciled. */
  readonly onEvent: (key: string) => void
}

/**
 * Requests a reconcile of a record when it changes, when a record derived from it changes, or when
 * the Secrets of its namespace change. Starts with all existing records. The returned function
 * unsubscribes.
 */
export function watchInputs(parts: TriggerParts): () => void {
  const { records, secrets, cache, owners, onEvent } = parts
  const sources = new SourceIndex()
  const notify = (key: string, object: ApiObject): void => {
    for (const one of isDerived(object) ? ownersOf(object) : [key]) onEvent(one)
    if (isAuthoritative(object)) for (const one of sources.of(key)) onEvent(one)
  }
  // An authoritative record that one source wrote is news to its other sources. A list contains
  // only the final state, which may include changes of others from before our write.
  const isKnown = (key: string, object: ApiObject, isListed: boolean): boolean =>
    !isListed && cache.isEcho(key, object) && !isAuthoritative(object)
  const endRecords = records.subscribe({
    onAdd: (key, object, isListed) => {
      sources.add(key, object)
      if (!isKnown(key, object, isListed)) notify(key, object)
    },
    onUpdate: (key, object, before, isListed) => {
      sources.remove(key, before)
      sources.add(key, object)
      if (isChanged(object, before) && !isKnown(key, object, isListed)) notify(key, object)
    },
    onDelete: (key, before) => {
      sources.remove(key, before)
      notify(key, before)
    },
  })
  const endOwners = owners.onGone((key) => {
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
  }
}

/** Keys of the records that an object was derived from. */
function ownersOf(object: ApiObject): readonly string[] {
  const metadata = metadataOf(object)
  const namespace = textOf(metadata, 'namespace')
  return itemsOf(metadata, 'ownerReferences')
    .filter(({ kind }) => kind === 'DNSRecord')
    .map((owner) => `${namespace}/${textOf(owner, 'name')}`)
}

/**
 * A record's status is ignored: this operator writes it, or it does not concern us. The reports
 * between clusters in it are the exception.
 */
function isChanged(object: ApiObject, before: ApiObject): boolean {
  const [now, then] = [metadataOf(object), metadataOf(before)]
  const names = [
    'generation',
    'labels',
    'annotations',
    'finalizers',
    'ownerReferences',
    'deletionTimestamp',
  ]
  return (
    names.some((name) => !isSame(now[name], then[name])) ||
    isReadyForDelegation(object) !== isReadyForDelegation(before) ||
    !isSame(remoteStatusesOf(object), remoteStatusesOf(before))
  )
}

function remoteStatusesOf(object: ApiObject): JsonValue | undefined {
  return mappingOf(object, 'status').remoteRecordStatuses
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
  for (const record of records.objects()) {
    const metadata = metadataOf(record)
    if (textOf(metadata, 'namespace') !== namespace || isDerived(record)) continue
    const used = textOf(mappingOf(record, 'spec').providerRef, 'name')
    if (used === name || (used === '' && isDefault)) {
      keys.push(`${namespace}/${textOf(metadata, 'name')}`)
    }
  }
  return keys
}
