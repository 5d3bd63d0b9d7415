import { stringify } from 'yaml'

/** A case and whether it passed. */
export interface CaseResult {
  readonly file: string
  readonly passed: boolean
  /** Kinds of its policies. */
  readonly kinds: readonly string[]
}

/** The release of the Network Policy API whose types the cases have. */
const API_VERSION = 'v0.2.0'
/** Upstream has no name for this feature, and no tests. */
const FEATURE = 'ClusterNetworkPolicyEgressDomainNames'
/** Standard tests of that release. */
const STANDARD_TESTS = 22

/**
 * Returns the results of the cases of ClusterNetworkPolicies as a ConformanceReport of the Network Policy API, in YAML.
 * The standard tests of its suite count as skipped.
 */
export function composeReport(
  results: readonly CaseResult[],
  { name, version }: { readonly name: string; readonly version: string },
  date: Date,
): string {
  const own = results.filter(({ kinds }) => kinds.includes('ClusterNetworkPolicy'))
  const failed = own.filter(({ passed }) => !passed).map(({ file }) => file)
  const report = {
    apiVersion: 'policy.networking.k8s.io/v1alpha1',
    date: `${date.toISOString().slice(0, 19)}Z`,
    implementation: {
      additionalInformation: 'test/conformance/domain-names/README.md',
      contact: [],
      organization: name,
      project: name,
      url: '',
      version,
    },
    kind: 'ConformanceReport',
    networkPolicyV2APIVersion: API_VERSION,
    profiles: [
      {
        experimental: {
          ...(failed.length === 0 ? {} : { failedTests: failed }),
          result: failed.length === 0 ? 'success' : 'failure',
          statistics: { Failed: failed.length, Passed: own.length - failed.length, Skipped: 0 },
          summary: `The cases of test/conformance/domain-names, as the suite has no test for domainNames. It does not have the feature ${FEATURE} either.`,
          supportedFeatures: [FEATURE],
        },
        name: 'ClusterNetworkPolicy',
        standard: {
          result: 'partial',
          statistics: { Failed: 0, Passed: 0, Skipped: STANDARD_TESTS },
          summary: 'The tests of the suite, which need a cluster, were not run.',
        },
      },
    ],
  }
  return stringify(report)
}
