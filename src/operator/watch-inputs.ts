import { type ApiObject, type JsonValue, textOf } from '../kube/api.ts'
import type { Informer } from '../kube/informer.ts'
import { isAuthoritative, isDerived } from './decide.ts'
import type { OwnerIndex } from './delegation/owner-index.ts'
import { isReadyForDelegation } from './delegation/remote-statuses.ts'
import { SourceIndex } from './delegation/source-index.ts'
import { isSame, itemsOf, mappingOf, metadataOf } from './object.ts'
import type { RecordCache } from './record-cache.ts'
import { isDefaultProvider } from './secret-cache.ts'

export interface TriggerParts {
  readonly records: Informer
  readonly secrets: Informer
  readonly cache: RecordCache
  readonly owners: Pick<OwnerIndex, 'onGone'>
  /** The record is to be looked at. */
  readonly onEvent: (key: string) => void
}

/**
 * Has records looked at when something happens that matters to them: to themselves, to what was made of them, or to the
 * Secrets of their namespace. Begins with all records that are there. The returned function ends it.
 */
export function watchInputs(parts: TriggerParts): () => void {
  const { records, secrets, cache, owners, onEvent } = parts
  const sources = new SourceIndex()
  const notify = (key: string, object: ApiObject): void => {
    for (const one of isDerived(object) ? ownersOf(object) : [key]) onEvent(one)
    if (isAuthoritative(object)) for (const one of sources.of(key)) onEvent(one)
  }
  // Of what is written for one source, its other sources know nothing; and what others did before we wrote is in a list
  // only as part of what came of it.
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

/** Keys of the records that an object was made of. */
function ownersOf(object: ApiObject): readonly string[] {
  const metadata = metadataOf(object)
  const namespace = textOf(metadata, 'namespace')
  return itemsOf(metadata, 'ownerReferences')
    .filter(({ kind }) => kind === 'DNSRecord')
    .map((owner) => `${namespace}/${textOf(owner, 'name')}`)
}

/** What a record's status says is our own word, or does not concern us; but for what clusters tell each other there. */
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

/** Keys of the records that a Secret is, or may be, the provider of. */
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
