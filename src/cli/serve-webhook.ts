import { once } from 'node:events'
import { accessSync, constants, statSync } from 'node:fs'
import { openHttp } from '../api/http.ts'
import { isLoopback } from '../base/loopback.ts'
import { reasonOf } from '../base/system-error.ts'
import type { Logger } from '../base/telemetry/log.ts'
import { MetricsRegistry } from '../base/telemetry/metrics.ts'
import { systemTimers } from '../base/timers.ts'
import { VERSION } from '../base/version.ts'
import { HttpsClient } from '../kube/https-client.ts'
import { loadKubeConfig, warningOf } from '../kube/kubeconfig.ts'
import { ClusterRecordStore } from '../webhook/cluster-store.ts'
import { WebhookListener } from '../webhook/listener.ts'
import { FileRecordStore } from '../webhook/manifest-store.ts'
import { WebhookProvider } from '../webhook/provider.ts'
import type { RecordStore } from '../webhook/record-store.ts'
import type { WebhookArgs } from './webhook-args.ts'

/** Serves external-dns until a signal ends it. Resolves to the exit code. Rejects if it can't start. */
export async function serveWebhook(args: WebhookArgs, log: Logger): Promise<number> {
  const { address, owner, zones, excluded, namespace } = args
  const metrics = new MetricsRegistry()
  const store = args.manifests === '' ? await openCluster(args, log) : openDirectory(args)
  const provider = new WebhookProvider({
    store,
    scope: { owner, zones, namespace },
    excluded,
    log,
  })
  const isLocal = isLoopback(address)
  const listener = new WebhookListener({ address, isLocal, provider, log, metrics })
  const port = await listener.listen()
  const where = address.replace(/\d+$/, String(port))
  log.info(`Sextant-${VERSION} webhook on ${where}`, 'webhook-started')
  if (!isLocal) {
    log.warning(
      `webhook: any client that reaches ${where} can change the records; listen on localhost`,
      'webhook-exposed',
    )
  }
  const page = await openPages(args, metrics, log)
  const [signal] = await Promise.race(['SIGTERM', 'SIGINT'].map((name) => once(process, name)))
  log.info(`${signal}: Shutting down`, 'signal-stop')
  await Promise.all([listener.close(), page?.close()])
  return 0
}

async function openCluster(args: WebhookArgs, log: Logger): Promise<RecordStore> {
  const { kubeconfig, context, namespace, owner } = args
  if (kubeconfig === '' && !process.env.KUBERNETES_SERVICE_HOST) {
    throw new Error(
      'not in a Kubernetes cluster: name the cluster with --kubeconfig FILE, or write files with --manifests DIR',
    )
  }
  const load = () => loadKubeConfig({ kubeconfig, context })
  const config = await load()
  const warning = warningOf(config)
  if (warning !== '') log.warning(warning, 'kubeconfig-warning')
  const api = new HttpsClient(config, load)
  return new ClusterRecordStore({ api, timers: systemTimers, namespace, owner })
}

/** Throws an error if no file can be written there. */
function openDirectory({ manifests, owner }: WebhookArgs): RecordStore {
  try {
    if (!statSync(manifests).isDirectory()) throw new Error('not a directory')
    accessSync(manifests, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    throw new Error(`--manifests ${manifests} cannot be used: ${reasonOf(error)}`, { cause: error })
  }
  return new FileRecordStore(manifests, owner)
}

async function openPages({ metricsAddress }: WebhookArgs, metrics: MetricsRegistry, log: Logger) {
  if (metricsAddress === '') return undefined
  const plain = { status: 200, contentType: 'text/plain; charset=utf-8', body: 'ok\n' }
  return openHttp({
    address: metricsAddress,
    routes: [
      { path: '/healthz', reply: () => plain },
      {
        path: '/metrics',
        reply: async (_query, accept) => ({ status: 200, ...(await metrics.page(accept)) }),
      },
    ],
    onError: (path, error) => log.error(`${path}: ${reasonOf(error)}`, 'http-request-failed'),
  })
}
