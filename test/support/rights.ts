import type { Cluster } from './cluster.ts'
import { until } from './until.ts'

/** Where `deploy/` has its accounts, and the namespace that its overlay `chosen-namespaces` is for. */
export const SYSTEM = 'sextant-system'
export const CHOSEN = 'gateways'
/** Ample, for a machine on which other tests run too. */
const IN_FORCE_MS_MAX = 120_000

/** What a process of ours prints of a right that it lacks. */
export const LACKED = /forbidden|unauthorized/i

/** `verb group/resource[/subresource] [namespace [name]]`; a core resource has no group. The account is in `home`. */
export async function may(
  cluster: Cluster,
  account: string,
  right: string,
  home = SYSTEM,
): Promise<boolean> {
  const [verb, path = '', namespace = '', name = ''] = right.split(' ')
  const [resource, subresource = ''] = path.replace(/^.*:/, '').split('/')
  const group = path.includes(':') ? path.split(':')[0] : ''
  const spec = {
    user: `system:serviceaccount:${home}:sextant-${account}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${home}`, 'system:authenticated'],
    resourceAttributes: { verb, group, resource, subresource, namespace, name },
  }
  const review = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
  return (await cluster.must('POST', review, { spec })).status.allowed
}

export const READ = ['get', 'list', 'watch']
export const WRITE = ['create', 'update', 'patch', 'delete']
export const each = (verbs: readonly string[], rest: string) =>
  verbs.map((verb) => `${verb} ${rest}`)
export const RECORDS = ['kuadrant.io:dnsrecords', 'kuadrant.io:dnshealthcheckprobes']

/** What each account may where records are, in a namespace or ('') in all of them. */
export const SERVER = (where: string) => RECORDS.flatMap((path) => each(READ, `${path} ${where}`))
export const OPERATOR = (where: string) => [
  ...RECORDS.flatMap((path) => [
    ...each([...READ, 'create', 'patch', 'delete'], `${path} ${where}`),
    `patch ${path}/status ${where}`,
  ]),
  `update kuadrant.io:dnsrecords/finalizers ${where}`,
  ...each(READ, `secrets ${where}`),
  ...each(['create', 'patch'], `events.k8s.io:events ${where}`),
]
/** What server, exchange and operator may where they run. */
export const EVENTS_AT_HOME = each(['create', 'patch'], `events.k8s.io:events ${SYSTEM}`)
/** What the operator alone may where it runs, wherever records are. */
export const OPERATOR_AT_HOME = [
  ...each(['get', 'create', 'update'], `coordination.k8s.io:leases ${SYSTEM}`),
  ...each(READ, `secrets ${SYSTEM}`),
  'get namespaces kube-system kube-system',
]

/** Waits until an account has all of these rights: an API server learns of roles some time after it has taken them. */
export async function rightsInForce(
  cluster: Cluster,
  account: string,
  rights: readonly string[],
  home = SYSTEM,
): Promise<void> {
  let missing = [...rights]
  const areThere = async () => {
    const before = missing
    missing = []
    for (const right of before) {
      if (!(await may(cluster, account, right, home))) missing.push(right)
    }
    return missing.length === 0
  }
  await until(areThere, `rights of ${account}`, IN_FORCE_MS_MAX).catch((error: Error) => {
    throw new Error(`${error.message}: ${missing.join(', ')}`)
  })
}
