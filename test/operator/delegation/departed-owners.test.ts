import t from 'tap'
import { composeNote } from '../../../src/operator/delegation/registry.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import {
  AUTHORITATIVE,
  address,
  DelegationFixture,
  HOST,
} from '../../support/delegation-fixture.ts'
import { DelegationSimulation } from '../delegation-simulation.ts'

const APP = address(HOST, '192.0.2.1')
const OTHER = address(HOST, '192.0.2.2')
const { recordTTL: _, ...NO_TTL } = APP

t.test('endpoints of a record that was deleted without its finalizer are removed', async (t) => {
  for (const { name, others, given, served } of [
    { name: 'the only one', others: [], given: APP, served: [] },
    { name: 'one of two', others: [OTHER], given: APP, served: [`${HOST} A 192.0.2.2`] },
    { name: 'without a TTL', others: [], given: NO_TTL, served: [] },
  ]) {
    const fixture = new DelegationFixture()
    fixture.delegate('app', [given])
    if (others.length > 0) fixture.delegate('other', others)
    await fixture.settle()
    const owner = fixture.field('app', 'status', 'ownerID')
    // As after the patch of a user. A restarted operator knows no more than this.
    fixture.cluster.records.delete('a/app')
    await fixture.settleLater()
    t.strictSame(fixture.served(), served, name)
    t.equal(fixture.cluster.records.has(`a/${AUTHORITATIVE}`), others.length > 0, name)
    t.strictSame(fixture.departed, [`${AUTHORITATIVE} ${owner}`], name)
    t.strictSame(await fixture.settleLater(), [], name)
  }
})

t.test('a new record of the same name replaces the old one', async (t) => {
  const fixture = new DelegationFixture()
  fixture.delegate('app', [APP])
  await fixture.settle()
  const { metadata, ...rest } = fixture.cluster.stored('a/app')!
  const renewed = { ...(metadata as object), uid: 'another', finalizers: [] }
  fixture.cluster.put({ ...rest, metadata: renewed, status: {} })
  await fixture.settleLater()
  await fixture.settleLater()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`])
  const record = new DnsRecordView(fixture.cluster.stored('a/app')!)
  t.strictSame(fixture.field('app', 'status', 'domainOwners'), [record.ownerId])
})

t.test('endpoints of other clusters, and of other programs, are kept', async (t) => {
  const simulation = new DelegationSimulation()
  const dublin = simulation.add('dublin')
  const boston = simulation.add('boston', 'secondary')
  dublin.delegate('own', [APP])
  boston.delegate('theirs', [OTHER])
  await simulation.settle()
  boston.isUp = false
  dublin.cluster.records.delete('a/own')
  await simulation.settle()
  t.strictSame(dublin.served(), [`${HOST} A 192.0.2.2`], 'the other cluster cannot be reached')

  const fixture = new DelegationFixture()
  fixture.delegate('app', [APP])
  await fixture.settle()
  const stored = fixture.cluster.stored(`a/${AUTHORITATIVE}`)!
  const view = new DnsRecordView(stored)
  const foreign = { owner: 'kuadrant', group: '', cluster: '', note: undefined }
  const [endpoint] = view.endpoints.filter(({ recordType }) => recordType === 'A')
  const note = composeNote(endpoint!, {
    ...foreign,
    targets: ['192.0.2.1'],
    ttlSeconds: undefined,
  })
  const endpoints = [...view.endpointObjects, note]
  fixture.cluster.put({ ...stored, spec: { ...(stored.spec as object), endpoints } })
  fixture.cluster.records.delete('a/app')
  await fixture.settleLater()
  t.strictSame(fixture.served(), [`${HOST} A 192.0.2.1`], 'a note of another operator')
})
