import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { type HttpListener, openHttp, type Route } from '../api/http.ts'
import { systemClock } from '../base/clock.ts'
import { Random } from '../base/random.ts'
import { escapeControls, type Logger } from '../base/telemetry/log.ts'
import { MetricsRegistry } from '../base/telemetry/metrics.ts'
import { WorkSpans } from '../base/telemetry/spans/work-spans.ts'
import { systemTimers } from '../base/timers.ts'
import { VERSION } from '../base/version.ts'
import { HttpsClient } from '../kube/https-client.ts'
import { loadKubeConfig, warningOf } from '../kube/kubeconfig.ts'
import { ClockCheck } from '../operator/cluster/clock-check.ts'
import { Operator } from '../operator/operator.ts'
import { RecordController } from '../operator/record-controller.ts'
import { createSourcesController } from '../operator/sources/sources-controller.ts'
import { kindsOf, OBJECT_KINDS } from '../sources/objects/object-kinds.ts'
import { createEgressControllers } from './egress-controllers.ts'
import { releaseMemoryAfterStart } from './memory-release.ts'
import { openNotifyPort } from './notify-port.ts'
import type { OperatorArgs } from './operator-args.ts'

/** Runs the controllers until a signal ends it. Resolves to the exit code. Rejects if it can't start. */
export async function serveOperator(args: OperatorArgs, log: Logger): Promise<number> {
  const { context, namespaces, settings } = args
  const load = () => loadKubeConfig({ kubeconfig: pathOf(args.kubeconfig), context })
  if (args.kubeconfig === '' && !process.env.KUBERNETES_SERVICE_HOST) {
    throw new Error('not in a Kubernetes cluster: name the cluster with --kubeconfig FILE')
  }
  const config = await load()
  const warning = warningOf(config)
  if (warning !== '') log.warning(warning, 'kubeconfig-warning')
  const registry = new MetricsRegistry()
  const api = new ClockCheck(new HttpsClient(config, load), { clock: systemClock, log })
  const parts = {
    api,
    apiClock: api,
    namespaces,
    log,
    clock: systemClock,
    timers: systemTimers,
    random: new Random(randomInt(2 ** 32)),
  }
  const exporter = await openSpans(args, registry, log)
  const spans = exporter && new WorkSpans(systemClock, (span) => exporter.add(span))
  let records: RecordController | undefined
  const operator = new Operator(parts, settings, registry, (env) => {
    if (args.controllers.has('dnsrecord')) records = new RecordController(env, settings, spans)
    const egress = createEgressControllers(args.controllers, args.egress, env)
    if (records === undefined) return egress
    const { shares } = settings
    const sources = { kinds: kindsOf(args.sources), known: OBJECT_KINDS, shares }
    return [records, createSourcesController(env, records.cluster, sources), ...egress]
  })
  const listeners: { close(): Promise<void> }[] = [
    ...(await listen(args, { operator, api, registry }, log)),
    ...(records === undefined
      ? []
      : await openNotifyPort(args.notifyAddresses, records.notifyReceiver, log)),
  ]
  log.info(`Sextant-${VERSION} operator`, 'operator-started')
  const code = await untilSignal(operator, log)
  for (const listener of listeners) await listener.close()
  await exporter?.stop()
  return code
}

async function openSpans({ collector: url }: OperatorArgs, metrics: MetricsRegistry, log: Logger) {
  if (url === undefined) return undefined
  const { EXPORT_DEFAULTS, openExporter } = await import('../base/telemetry/spans/open-exporter.ts')
  const settings = { ...EXPORT_DEFAULTS, kind: 'otlp', url, service: 'sextant-operator' } as const
  return openExporter(settings, { log, metrics, timers: systemTimers, seed: randomInt(2 ** 32) })
}

/** Resolves a relative path of the kubeconfig against the working directory. */
function pathOf(kubeconfig: string): string {
  return kubeconfig === '' ? '' : resolve(kubeconfig)
}

/** TERM and INT release the lease and end; the second INT ends at once. */
function untilSignal(operator: Operator, log: Logger): Promise<number> {
  return new Promise((resolve, reject) => {
    // Timers do not keep the process alive, and there may be no listener.
    const keepAlive = setInterval(() => {}, 2 ** 30)
    const end = (code: number): void => {
      clearInterval(keepAlive)
      resolve(code)
    }
    const stop = (): void => {
      operator.close().then(() => end(0), reject)
    }
    let interrupts = 0
    process.on('SIGTERM', () => {
      log.info('SIGTERM: Shutting down', 'signal-stop')
      stop()
    })
    process.on('SIGINT', () => {
      if (++interrupts > 1) {
        log.info('SIGINT: Force quit', 'signal-quit')
        end(2)
        return
      }
      log.info('SIGINT: Shutting down', 'signal-stop')
      stop()
    })
    operator.start().then(() => releaseMemoryAfterStart(log), reject)
  })
}

/** What the HTTP pages show. */
interface Served {
  readonly operator: Operator
  readonly api: ClockCheck
  readonly registry: MetricsRegistry
}

async function listen(
  { metricsAddress, probeAddress }: OperatorArgs,
  { operator, api, registry }: Served,
  log: Logger,
): Promise<readonly HttpListener[]> {
  const metrics: Route = {
    path: '/metrics',
    reply: async (_query, accept) => ({ status: 200, ...(await registry.page(accept)) }),
  }
  const probes: Route[] = [
    { path: '/healthz', reply: () => plain(200, 'ok') },
    {
      path: '/readyz',
      reply: () => {
        const reason = escapeControls(operator.unreadyReason())
        const notes = [operator.note(), api.fault].filter((one) => one !== '')
        const note = escapeControls(notes.join('; '))
        return reason === '' ? plain(200, `ok\n${note}`.trim()) : plain(503, reason)
      },
    },
  ]
  const asked = [
    { address: metricsAddress, routes: [metrics] },
    { address: probeAddress, routes: probes },
  ].filter(({ address }) => address !== '')
  const onError = (path: string, error: unknown): void =>
    log.error(`${path}: ${messageOf(error)}`, 'http-request-failed')
  const listeners: HttpListener[] = []
  for (const { address, routes } of asked) {
    listeners.push(await openHttp({ address, routes, onError }))
  }
  return listeners
}

function plain(status: number, text: string) {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
