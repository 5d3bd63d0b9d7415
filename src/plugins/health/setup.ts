import { printDuration, scanDuration } from '../../base/duration.ts'
import type { Dispenser } from '../../corefile/dispenser.ts'
import { scanHostPort } from '../../plugin/arguments/host-port.ts'
import type { Description } from '../../plugin/description.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { fetchHttp, type PollUrl, SelfPoll } from './self-poll.ts'

const DEFAULT_ADDRESS = ':8080'
const PATH = '/health'
/** 0.25 ms, tenfold four times: 2.5 s. */
const SECONDS_BUCKETS = [0.00025, 0.0025, 0.025, 0.25, 2.5]

/** `health [ADDRESS] { lameduck DURATION }`: whether the process is alive. */
export const health: Directive = healthWith(fetchHttp)

export function healthWith(fetch: PollUrl): Directive {
  return { name: 'health', setup: (c) => setup(c, fetch) }
}

function setup(c: SetupContext, fetch: PollUrl): Description {
  const { address, lameduckMs } = scanOptions(c.dispenser)
  const seconds = c.metrics.histogram(
    'coredns_health_request_duration_seconds',
    'Histogram of the time (in seconds) each request took.',
    SECONDS_BUCKETS,
  )
  const failures = c.metrics.counter(
    'coredns_health_request_failures_total',
    'The number of times the health check failed.',
  )
  let poll: SelfPoll | undefined
  const url = selfUrl(address)
  // The system chooses the port for port 0, and only the listener knows it.
  if (url !== undefined) {
    poll = new SelfPoll({
      url,
      clock: c.clock,
      timers: c.timers,
      log: c.log,
      fetch,
      observeSeconds: (value) => seconds.observe(value),
      countFailure: () => failures.inc(),
    })
  }
  const reply = () => ({ status: 200, contentType: 'text/plain', body: 'OK' })
  return {
    http: { address, path: PATH, reply },
    // Other directives may start slowly. Until they have started, no socket listens.
    serving: () => poll?.start(),
    stop: () => poll?.stop(),
    exit: async () => {
      if (lameduckMs > 0) await waitLameduck(c, lameduckMs)
      // The endpoint closes next. Other sockets may take longer.
      poll?.stop()
    },
  }
}

/** Continues to serve for a while, so that load balancers can notice the shutdown. */
function waitLameduck(c: SetupContext, lameduckMs: number): Promise<void> {
  c.log.info(`Going into lameduck mode for ${printDuration(lameduckMs)}`, 'lameduck')
  return new Promise((resolve) => {
    c.timers.after(lameduckMs, resolve)
  })
}

function scanOptions(d: Dispenser): { address: string; lameduckMs: number } {
  let address = DEFAULT_ADDRESS
  let lameduckMs = 0
  while (d.next()) {
    const args = d.remainingArgs(0, 1)
    if (args[0] !== undefined) address = scanHostPort(d, args[0])
    d.eachProperty(() => {
      if (d.value() !== 'lameduck') throw d.argError()
      lameduckMs = scanLameduck(d)
    })
  }
  return { address, lameduckMs }
}

function scanLameduck(d: Dispenser): number {
  const text = d.onlyArg()
  const lameduckMs = scanDuration(text)
  if (lameduckMs === undefined || lameduckMs < 0) {
    throw d.error(`unable to parse lameduck duration value: ${JSON.stringify(text)}`)
  }
  return lameduckMs
}

/** URL at which the process reaches its own endpoint; undefined for port 0. */
function selfUrl(address: string): string | undefined {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon)
  const port = address.slice(colon + 1)
  if (Number(port) === 0) return undefined
  const everywhere = host === '' || host === '0.0.0.0' || host === '[::]'
  const reached = everywhere ? (host === '[::]' ? '[::1]' : '127.0.0.1') : host
  return `http://${reached}:${port}${PATH}`
}
