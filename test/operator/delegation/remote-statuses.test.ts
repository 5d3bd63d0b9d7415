import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import {
  decideRemotes,
  decideRemoval,
  isReadyForDelegation,
} from '../../../src/operator/delegation/remote-statuses.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { dnsRecord } from '../../support/operator-objects.ts'

const DELETED_MS = Date.parse('2026-02-01T00:00:00Z')
const HOUR_MS = 3_600_000

/** What one cluster says. */
function word(status: string, reason: string, message = '', observedGeneration = 1): ApiObject {
  const ready = { type: 'Ready', status, reason, message }
  return { observedGeneration, conditions: [ready], domainOwners: [`owner-${message}`] }
}

const READY = word('True', 'ProviderSuccess', 'a')
const REMOVED = word('False', 'ProviderEndpointsRemoved')

function record(remoteRecordStatuses: ApiObject, metadata: ApiObject = {}): DnsRecordView {
  return new DnsRecordView(dnsRecord({ metadata, status: { remoteRecordStatuses } }))
}

t.test('a record is ready once all clusters that took it up have it as it is now', (t) => {
  const table = [
    {
      name: 'no primary accepted it',
      given: {},
      want: 'False AwaitingValidation: Awaiting validation: no other cluster has reconciled it',
    },
    {
      name: 'all have it',
      given: { a: READY, b: READY },
      want: 'True ProviderSuccess: Provider ensured the dns record',
    },
    {
      name: 'one has what it was before',
      given: { a: READY, 'b-of-long-id': word('True', 'ProviderSuccess', 'a', 0) },
      want: 'False AwaitingValidation: Awaiting validation: not yet reconciled by cluster b-of-lon…',
    },
    {
      name: 'one complains',
      given: { a: word('False', 'DNSProviderError', 'no zone'), b: READY },
      want: 'False DNSProviderError: cluster a: no zone',
    },
    {
      name: 'one says what no API takes as a reason',
      given: { 'a\n b': word('False', 'not a reason', 'x') },
      want: 'False ProviderError: cluster a??b: x',
    },
    {
      name: 'one says nothing that can be read',
      given: { a: { observedGeneration: 1, conditions: 'none', domainOwners: 7 } },
      want: 'False ProviderError: cluster a: no message',
    },
    {
      name: 'something that is no status',
      given: { a: 'text' },
      want: 'False AwaitingValidation: Awaiting validation: not yet reconciled by cluster a',
    },
    {
      name: 'many are behind',
      given: Object.fromEntries([...'abcdefg'].map((one) => [one, {}])),
      want: 'False AwaitingValidation: Awaiting validation: not yet reconciled by clusters a, b, c, d, e and 2 more',
    },
  ]
  for (const { name, given, want } of table) {
    const { isTrue, reason, message } = decideRemotes(record(given)).ready
    t.equal(`${isTrue ? 'True' : 'False'} ${reason}: ${message}`, want, name)
  }
  t.strictSame(decideRemotes(record({ b: READY, a: READY })).owners, ['owner-a'])
  t.end()
})

t.test('a deletion waits for clusters that took it up, and not for ever', (t) => {
  const deletionTimestamp = '2026-02-01T00:00:00Z'
  const letGo = { annotations: { 'sextant.io/let-go': 'true' } }
  const waiting = { kind: 'waiting', clusters: 'cluster b', untilMs: DELETED_MS + HOUR_MS }
  const table = [
    { name: 'no primary accepted it', given: {}, want: { kind: 'free', note: '' } },
    { name: 'all took it back', given: { a: REMOVED }, want: { kind: 'free', note: '' } },
    { name: 'one has yet to', given: { a: REMOVED, b: READY }, want: waiting },
    { name: 'one says nothing', given: { b: {} }, want: waiting },
    {
      name: 'time is up',
      given: { a: READY, b: REMOVED },
      afterMs: HOUR_MS,
      want: { kind: 'free', note: 'timed out waiting for cluster a' },
    },
    {
      name: 'it is to be let go',
      given: { a: READY },
      metadata: letGo,
      want: { kind: 'free', note: 'annotation sextant.io/let-go: not waiting for cluster a' },
    },
    {
      name: 'the annotation says something else',
      given: { b: READY },
      metadata: { annotations: { 'sextant.io/let-go': 'no' } },
      want: waiting,
    },
    {
      name: 'a time that is none holds nothing up',
      given: { a: READY },
      metadata: { deletionTimestamp: 'soon' },
      want: { kind: 'free', note: 'timed out waiting for cluster a' },
    },
  ]
  for (const { name, given, afterMs = HOUR_MS - 1, metadata = {}, want } of table) {
    const object = record(given, { deletionTimestamp, ...metadata })
    t.strictSame(decideRemoval(object, HOUR_MS, DELETED_MS + afterMs), want, name)
  }
  t.end()
})

t.test('a record has a face for each cluster', (t) => {
  const held = { type: 'ReadyForDelegation', status: 'True' }
  const status = { conditions: [held], remoteRecordStatuses: { a: READY } }
  const object = new DnsRecordView(dnsRecord({ status }))
  t.ok(isReadyForDelegation(object))
  t.strictSame(object.asSeenByCluster('a').status, READY)
  t.strictSame(object.asSeenByCluster('b').status, {})
  t.notOk(isReadyForDelegation(object.asSeenByCluster('a')))
  t.strictSame(object.asSeenByCluster('a').spec, object.spec)
  t.end()
})
