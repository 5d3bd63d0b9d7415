import type { HostShare } from '../../records/host-share.ts'
import { printHost } from '../../records/print-endpoint.ts'
import { lowerNameKey } from '../../records/validate/names.ts'
import { chooseProvider, type ProviderSecrets } from '../provider/provider-choice.ts'
import { chooseZone } from '../provider/zone-choice.ts'
import type { DnsRecordView } from '../record/record-view.ts'
import { type Contender, contend, printObject } from './contend.ts'
import type { ObjectFault } from './object-reports.ts'
import type { SourceRecord, ValidDocument } from './source-table.ts'

/** What becomes of a DNSRecord that an object asks for. */
export const SOURCE_STATES = [
  /** It is written and Ready. */
  'ready',
  /** It is written, and not Ready yet. */
  'pending',
  /** Another object has the host, and they contradict each other. */
  'conflict',
  /** Another namespace has the host. */
  'not-owned',
  /** No zone of the provider has the host, or the provider is not ours. */
  'outside-zones',
  /** The provider Secret of the namespace is missing or invalid. */
  'no-provider',
  'invalid',
  /** A DNSRecord of its name exists that was not written for it. */
  'name-taken',
] as const
export type SourceState = (typeof SOURCE_STATES)[number]

type Decision =
  | { readonly kind: 'write' }
  /** Nothing is written; an existing DNSRecord is kept. */
  | { readonly kind: 'keep'; readonly state: SourceState; readonly fault: ObjectFault }
  /** What exists is removed. `rival`: of the object that is served. */
  | {
      readonly kind: 'remove'
      readonly state: SourceState
      readonly fault?: ObjectFault
      readonly rival?: ObjectFault
    }

/** What a decision depends on besides the record. */
interface DecisionScene {
  readonly secretsOf: (namespace: string) => ProviderSecrets
  /** The DNSRecord that was written for it; undefined = it does not exist. */
  readonly writtenFor: (record: SourceRecord) => DnsRecordView | undefined
  /** The valid records of its host, with itself. */
  readonly sharing: (record: SourceRecord) => readonly SourceRecord[]
  readonly shares: readonly HostShare[]
}

/** Decides whether the DNSRecord of an object is written. `valid`: its content. */
export function decideRecord(
  record: SourceRecord,
  valid: ValidDocument,
  scene: DecisionScene,
): Decision {
  const { of } = record
  const place = placeOf(record, valid, scene)
  if (place.kind === 'outside') return { kind: 'remove', state: 'outside-zones' }
  if (place.kind === 'unknown') {
    const notes = [`${hostText(valid)}: ${place.message}`]
    return { kind: 'keep', state: 'no-provider', fault: { of, reason: 'NoProvider', notes } }
  }
  const contenders = scene.sharing(record).flatMap((one) => contenderOf(one, scene))
  const refusal = contend(contenders, scene.shares).get(record.key)
  if (refusal === undefined) return { kind: 'write' }
  const { reason, by, text } = refusal
  const notes = [`${hostText(valid)} of ${printObject(of)} is not served: ${text}`]
  const state = reason === 'HostConflict' ? 'conflict' : 'not-owned'
  return {
    kind: 'remove',
    state,
    fault: { of, reason, notes },
    ...(state === 'conflict' ? { rival: { of: by.of, reason, notes } } : {}),
  }
}

type Place =
  | { readonly kind: 'zone' }
  | { readonly kind: 'outside' }
  | { readonly kind: 'unknown'; readonly message: string }

/** Whether the host is in a zone of the default provider of its namespace. */
function placeOf({ of }: SourceRecord, { content }: ValidDocument, scene: DecisionScene): Place {
  const choice = chooseProvider('', scene.secretsOf(of.namespace))
  if (choice.kind === 'other') return { kind: 'outside' }
  if (choice.kind === 'fault') return { kind: 'unknown', message: choice.message }
  const found = chooseZone(printHost(content.rootHost), choice.provider.zones)
  return 'zone' in found ? { kind: 'zone' } : { kind: 'outside' }
}

/** Only what is served, or may be, keeps others from a host. */
function contenderOf(record: SourceRecord, scene: DecisionScene): Contender[] {
  const { key, of, valid } = record
  if (valid === undefined) return []
  const existing = scene.writtenFor(record)
  const { kind } = placeOf(record, valid, scene)
  if (kind === 'outside' || (kind === 'unknown' && existing === undefined)) return []
  const { content, document } = valid
  const contender = {
    key,
    of,
    created: document.metadata.creationTimestamp ?? '',
    written: existing?.created ?? '',
    host: lowerNameKey(content.rootHost),
    endpoints: content.endpoints,
  }
  return [contender]
}

function hostText({ document }: ValidDocument): string {
  return document.spec.rootHost
}
