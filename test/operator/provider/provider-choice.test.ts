import t from 'tap'
import type { ApiObject } from '../../../src/kube/api.ts'
import { chooseProvider } from '../../../src/operator/provider/provider-choice.ts'
import { DnsRecordView } from '../../../src/operator/record/record-view.ts'
import { dnsRecord, secret } from '../../support/operator-objects.ts'

const ZONES = { ZONES: 'k.example.com' }
const LABELS = { 'kuadrant.io/default-provider': 'true' }

function among(secrets: readonly ApiObject[]) {
  const nameOf = ({ metadata }: ApiObject) => (metadata as ApiObject).name
  const labelsOf = ({ metadata }: ApiObject) => (metadata as ApiObject).labels as ApiObject
  return {
    find: (name: string) => secrets.find((one) => nameOf(one) === name),
    defaults: () => secrets.filter((one) => 'kuadrant.io/default-provider' in labelsOf(one)),
  }
}

const NAMED = dnsRecord({ spec: { providerRef: { name: 'coredns' } } })
const NAMELESS = dnsRecord({ spec: { providerRef: null } })
const ours = secret('a', 'coredns', ZONES)
const aws = secret('a', 'coredns', {}, { type: 'kuadrant.io/aws' })
const first = secret('a', 'first', ZONES, { labels: LABELS })
const second = secret('a', 'second', ZONES, { labels: LABELS })
const awsDefault = secret('a', 'aws', {}, { type: 'kuadrant.io/aws', labels: LABELS })

t.test('the provider is the Secret that is named, else the default one', (t) => {
  const table = [
    {
      name: 'named',
      record: NAMED,
      secrets: [ours, first],
      want: { kind: 'ours', provider: { secretName: 'coredns' } },
    },
    {
      name: 'named, of another type',
      record: NAMED,
      secrets: [aws, first],
      want: { kind: 'other' },
    },
    {
      name: 'named, and not there',
      record: NAMED,
      secrets: [first],
      want: { kind: 'fault', message: 'Secret "coredns" not found', isMissing: true },
    },
    {
      name: 'named, and bad',
      record: NAMED,
      secrets: [secret('a', 'coredns', {})],
      want: {
        kind: 'fault',
        message: 'Secret "coredns": CoreDNS Provider credentials does not contain ZONES',
        isMissing: false,
      },
    },
    {
      name: 'the default one',
      record: NAMELESS,
      secrets: [ours, first],
      want: { kind: 'ours', provider: { secretName: 'first' } },
    },
    {
      name: 'the default one is of another type',
      record: NAMELESS,
      secrets: [ours, awsDefault],
      want: { kind: 'other' },
    },
    {
      name: 'no default one',
      record: NAMELESS,
      secrets: [ours],
      want: {
        kind: 'fault',
        message: 'No default provider secret labeled kuadrant.io/default-provider was found',
        isMissing: true,
      },
    },
    {
      name: 'several default ones',
      record: NAMELESS,
      secrets: [first, second],
      want: {
        kind: 'fault',
        message: 'Multiple default providers secrets found. Only one expected',
        isMissing: true,
      },
    },
  ]
  for (const { name, record, secrets, want } of table) {
    const { providerName } = new DnsRecordView(record)
    t.match(chooseProvider(providerName, among(secrets)), want, name)
  }
  t.end()
})
