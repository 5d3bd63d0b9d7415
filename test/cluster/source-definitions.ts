import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Cluster } from '../support/cluster.ts'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'
import { downloadModule } from './go-module.ts'

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
/** What the API server makes of a definition takes it a moment. */
const SERVED_MS = 120_000

const GATEWAY_MODULE = 'sigs.k8s.io/gateway-api@v1.7.0'
const GATEWAY_GROUP = 'gateway.networking.k8s.io'
export const GATEWAY_API = `/apis/${GATEWAY_GROUP}/v1`

const EXTERNAL_DNS_MODULE = 'sigs.k8s.io/external-dns@v0.23.0'
const EXTERNAL_DNS_GROUP = 'externaldns.k8s.io'
export const ENDPOINT_API = `/apis/${EXTERNAL_DNS_GROUP}/v1alpha1`

/** Installs definitions of the Gateway API, the standard channel, and waits until they are served. */
export async function installGatewayApi(
  cluster: Cluster,
  plurals: readonly string[] = [
    'gateways',
    'listenersets',
    'httproutes',
    'grpcroutes',
    'tlsroutes',
  ],
): Promise<void> {
  const folder = join(downloadModule(GATEWAY_MODULE, root), 'config/crd/standard')
  for (const plural of plurals)
    await install(cluster, join(folder, `${GATEWAY_GROUP}_${plural}.yaml`))
  for (const plural of plurals) await isServed(cluster, `${GATEWAY_API}/${plural}`)
}

/** Installs the definition of DNSEndpoint, and waits until it is served. */
export async function installDnsEndpoint(cluster: Cluster): Promise<void> {
  const folder = join(downloadModule(EXTERNAL_DNS_MODULE, root), 'config/crd/standard')
  await install(cluster, join(folder, `dnsendpoints.${EXTERNAL_DNS_GROUP}.yaml`))
  await isServed(cluster, `${ENDPOINT_API}/dnsendpoints`)
}

async function install(cluster: Cluster, file: string): Promise<void> {
  await cluster.must('POST', DEFINITIONS, parse(readFileSync(file, 'utf8')))
}

async function isServed(cluster: Cluster, path: string): Promise<void> {
  await until(async () => (await cluster.call('GET', path)).status === 200, path, SERVED_MS)
}
