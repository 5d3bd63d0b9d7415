import t from 'tap'
import { parse } from 'yaml'
import { composeReport } from './report.ts'

const OF = { name: 'sextant', version: '0.1.0' }
const DATE = new Date('2026-11-29T01:02:03.456Z')
const kinds = ['ClusterNetworkPolicy']

/** The fields that the types of the Network Policy API have (`conformance/apis/v1alpha1`). */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  '': 'apiVersion date implementation kind networkPolicyV2APIVersion profiles'.split(' '),
  implementation: 'additionalInformation contact organization project url version'.split(' '),
  profiles: 'experimental name standard'.split(' '),
  experimental:
    'failedTests result skippedTests statistics summary supportedFeatures unsupportedFeatures'.split(
      ' ',
    ),
  standard: 'failedTests result skippedTests statistics summary'.split(' '),
  statistics: 'Failed Passed Skipped'.split(' '),
}

/** `place.field` of each field that is not in FIELDS. */
function unknownFields(value: unknown, place = ''): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((one) => unknownFields(one, place))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([field, inner]) => {
    const isKnown = FIELDS[place]?.includes(field) === true
    return isKnown ? unknownFields(inner, field) : [`${place}.${field}`]
  })
}

for (const { title, results, want } of [
  {
    title: 'all cases pass',
    results: [
      { file: 'a.yaml', passed: true, kinds },
      { file: 'b.yaml', passed: true, kinds },
    ],
    want: { result: 'success', statistics: { Failed: 0, Passed: 2, Skipped: 0 } },
  },
  {
    title: 'a case fails; those of the other API do not count',
    results: [
      { file: 'a.yaml', passed: true, kinds },
      { file: 'b.yaml', passed: false, kinds },
      { file: 'c.yaml', passed: false, kinds: ['AdminNetworkPolicy'] },
    ],
    want: {
      result: 'failure',
      statistics: { Failed: 1, Passed: 1, Skipped: 0 },
      failedTests: ['b.yaml'],
    },
  },
]) {
  t.test(`the report has the form of the Network Policy API: ${title}`, (t) => {
    const report = parse(composeReport(results, OF, DATE))
    t.strictSame(unknownFields(report), [])
    t.match(report, {
      apiVersion: 'policy.networking.k8s.io/v1alpha1',
      kind: 'ConformanceReport',
      date: '2026-11-29T01:02:03Z',
      implementation: { project: 'sextant', version: '0.1.0' },
      networkPolicyV2APIVersion: /^v\d+\.\d+\.\d+$/,
      profiles: [
        {
          name: 'ClusterNetworkPolicy',
          // The tests of the suite were not run, so this claims no conformance.
          standard: { result: 'partial', statistics: { Failed: 0, Passed: 0 } },
          experimental: want,
        },
      ],
    })
    t.equal('failedTests' in report.profiles[0].experimental, 'failedTests' in want)
    t.end()
  })
}
