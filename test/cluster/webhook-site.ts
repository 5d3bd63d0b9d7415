import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import type { Cluster } from '../support/cluster.ts'
import { externalDnsBinary } from '../support/cluster-binary.ts'
import { freePort, MAIN, type RunningProgram, root, startProgram } from '../support/server.ts'
import { until } from '../support/until.ts'
import { SEEN_MS, ZONE } from './served-cluster.ts'

export const NAMESPACE = 'external-dns'
const UP_TO_DATE = /All records are already up to date/g

export interface RunningWebhook extends RunningProgram {
  readonly port: number
}

/** Starts `sextant webhook`; `place`: flags that say where it stores records. */
export async function startWebhook(t: Test, place: readonly string[]): Promise<RunningWebhook> {
  const port = await freePort()
  const program = startProgram(t, [
    ...([process.execPath, MAIN, 'webhook', '--zones', ZONE, '--namespace', NAMESPACE] as const),
    ...['--bind-address', `localhost:${port}`, '--metrics-bind-address', '0', ...place],
  ])
  await program.prints(/webhook on localhost/)
  return { ...program, port }
}

interface ExternalDnsOptions {
  readonly sources: readonly string[]
  readonly registry?: string
}

/** Starts external-dns, which reads `cluster` and writes to the webhook on `port`. */
export function startExternalDns(
  t: Test,
  cluster: Cluster,
  port: number,
  { sources, registry = 'txt' }: ExternalDnsOptions,
): RunningProgram {
  return startProgram(t, [
    externalDnsBinary(),
    ...['--provider=webhook', `--webhook-provider-url=http://localhost:${port}`],
    ...sources.map((source) => `--source=${source}`),
    ...['--policy=sync', '--interval=300ms', `--registry=${registry}`, '--txt-owner-id=default'],
    `--kubeconfig=${cluster.kubeconfig('admin')}`,
    ...['A', 'AAAA', 'CNAME', 'MX', 'SRV', 'TXT'].map((type) => `--managed-record-types=${type}`),
  ])
}

/** Waits until external-dns has found nothing to do, twice. */
export async function isSettled(externalDns: RunningProgram): Promise<void> {
  const count = () => externalDns.output().match(UP_TO_DATE)?.length ?? 0
  const before = count()
  await until(() => count() >= before + 2, 'external-dns to have nothing to do', SEEN_MS).catch(
    (error: Error) => {
      throw new Error(`${error.message}: ${externalDns.output().slice(-2000)}`)
    },
  )
}

/** The DNSRecords of the namespace. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the API says
export async function recordsOf(cluster: Cluster): Promise<any[]> {
  return (await cluster.must('GET', cluster.records(NAMESPACE))).items
}

/** Gives `viewer` the rights of the webhook in `deploy`, and no others. */
export async function grantRights(cluster: Cluster): Promise<void> {
  const text = readFileSync(join(root, 'deploy/external-dns/rights.yaml'), 'utf8')
  const [role, binding] = parseAllDocuments(text).map((document) => document.toJS())
  const path = `/apis/rbac.authorization.k8s.io/v1/namespaces/${NAMESPACE}`
  await cluster.must('POST', `${path}/roles`, role)
  const subjects = [{ kind: 'User', name: 'viewer' }]
  await cluster.must('POST', `${path}/rolebindings`, { ...binding, subjects })
}
