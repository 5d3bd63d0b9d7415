import { FQDN_APIS, type FqdnApi } from '../../../egress/policies/fqdn/fqdn-policy.ts'

/** Returns the key of a policy, different from that of the policy of this name in the other API. */
export function policyKey({ group }: FqdnApi, objectKey: string): string {
  return `${group}/${objectKey}`
}

/** The reverse of policyKey. `objectKey`: as in keyOf. */
export function scanPolicyKey(key: string): { readonly api: FqdnApi; readonly objectKey: string } {
  const slash = key.indexOf('/')
  const group = key.slice(0, slash)
  const api = FQDN_APIS.find((one) => one.group === group) ?? FQDN_APIS[0]!
  return { api, objectKey: key.slice(slash + 1) }
}
