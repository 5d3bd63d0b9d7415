import { randomInt } from 'node:crypto'
import { resolve } from 'node:path'
import { type HttpListener, openHttp, type Route } from '../api/http.ts'
import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { Random } from '../base/random.ts'
import { systemTimers } from '../base/timers.ts'
import { VERSION } from '../base/version.ts'
import { HttpsClient } from '../kube/https-client.ts'
import { loadKubeConfig, warningOf } from '../kube/kubeconfig.ts'
import { Operator } from '../operator/operator.ts'
import { createLogger, type Logger } from '../telemetry/log.ts'
import { MetricsRegistry } from '../telemetry/metrics.ts'
import { openNotifyPort } from './notify-port.ts'
import {
  type Level,
  type OperatorArgs,
  operatorFlagLines,
  scanOperatorArgs,
} from './operator-args.ts'
import type { Output } from './output.ts'

const HELP_FLAG = /^--?h(elp)?$/

/**
 * `sextant operator`: publishes the DNSRecords of a cluster until a signal ends it. Resolves to the exit code: 0, 1 = did
 * not start, 2 = interrupted twice.
 */
export async function runOperator(argv: readonly string[], output: Output): Promise<number> {
  if (argv.some((arg) => HELP_FLAG.test(arg))) {
    for (const line of operatorFlagLines()) output.print(line)
    return 0
  }
  const args = scanOperatorArgs(argv, process.env)
  if (typeof args === 'string') {
    output.printError(args)
    return 1
  }
  try {
    return await run(args, createLevelLogger(args.level, output.print))
  } catch (error) {
    output.printError(error instanceof InputError ? error.print() : messageOf(error))
    return 1
  }
}

/** Rejects where it can't start. */
async function run(args: OperatorArgs, log: Logger): Promise<number> {
  const { context, namespaces, settings } = args
  const load = () => loadKubeConfig({ kubeconfig: pathOf(args.kubeconfig), context })
  if (args.kubeconfig === '' && !process.env.KUBERNETES_SERVICE_HOST) {
    throw new Error('not in a Kubernetes cluster: say which one by --kubeconfig FILE')
  }
  const config = await load()
  const warning = warningOf(config)
  if (warning !== '') log.warning(warning)
  const registry = new MetricsRegistry()
  const parts = {
    api: new HttpsClient(config, load),
    namespaces,
    log,
    clock: systemClock,
    timers: systemTimers,
    random: new Random(randomInt(2 ** 32)),
  }
  const operator = new Operator(parts, settings, registry)
  const listeners: { close(): Promise<void> }[] = [
    ...(await listen(args, operator, registry, log)),
    ...(await openNotifyPort(args.notifyAddresses, operator.notifyDesk, log)),
  ]
  log.info(`Sextant-${VERSION} operator`)
  const code = await untilSignal(operator, log)
  for (const listener of listeners) await listener.close()
  return code
}

/** A relative path, which a kubeconfig has from where the command is given. */
function pathOf(kubeconfig: string): string {
  return kubeconfig === '' ? '' : resolve(kubeconfig)
}

/** TERM and INT give the lease back and end; the second INT ends at once. */
function untilSignal(operator: Operator, log: Logger): Promise<number> {
  return new Promise((resolve, reject) => {
    // Timers don't keep the process alive, and there may be no listener either.
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
      log.info('SIGTERM: Shutting down')
      stop()
    })
    process.on('SIGINT', () => {
      if (++interrupts > 1) {
        log.info('SIGINT: Force quit')
        end(2)
        return
      }
      log.info('SIGINT: Shutting down')
      stop()
    })
    operator.start().catch(reject)
  })
}

async function listen(
  { metricsAddress, probeAddress }: OperatorArgs,
  operator: Operator,
  registry: MetricsRegistry,
  log: Logger,
): Promise<readonly HttpListener[]> {
  const metrics: Route = {
    path: '/metrics',
    run: async () => ({
      status: 200,
      contentType: registry.contentType,
      body: await registry.print(),
    }),
  }
  const probes: Route[] = [
    { path: '/healthz', run: () => plain(200, 'ok') },
    {
      path: '/readyz',
      run: () => {
        const reason = operator.unreadyReason()
        return reason === '' ? plain(200, `ok\n${operator.note()}`.trim()) : plain(503, reason)
      },
    },
  ]
  const asked = [
    { address: metricsAddress, routes: [metrics] },
    { address: probeAddress, routes: probes },
  ].filter(({ address }) => address !== '')
  const onError = (path: string, error: unknown): void => log.error(`${path}: ${messageOf(error)}`)
  const listeners: HttpListener[] = []
  for (const { address, routes } of asked) {
    listeners.push(await openHttp({ address, routes, onError }))
  }
  return listeners
}

function plain(status: number, text: string) {
  return { status, contentType: 'text/plain; charset=utf-8', body: `${text}\n` }
}

/** A logger of the server's form, without lines below `level`. */
function createLevelLogger(level: Level, sink: (line: string) => void): Logger {
  const log = createLogger('', sink, () => level === 'debug')
  const mute = (): void => {}
  return {
    debug: log.debug,
    info: level === 'warning' || level === 'error' ? mute : log.info,
    warning: level === 'error' ? mute : log.warning,
    error: log.error,
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
