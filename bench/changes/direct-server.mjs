// A server with data threads whose zone is changed in its own process: the image and its publishing
// without files, YAML and records. Told by messages: { put: version } and { perSecond }.
//   direct-server.mjs PORT NAMES THREADS
import { Worker } from 'node:worker_threads'
import { systemClock } from '../../dist/base/clock.js'
import { Random } from '../../dist/base/random.js'
import { LineBuffer, printLine } from '../../dist/base/telemetry/lines.js'
import { createLogger } from '../../dist/base/telemetry/log.js'
import { MetricsRegistry } from '../../dist/base/telemetry/metrics.js'
import { systemTimers } from '../../dist/base/timers.js'
import { CookieJar } from '../../dist/dns/edns/cookie.js'
import { scanName } from '../../dist/dns/name/name.js'
import { ServerCounts, ServerTotals } from '../../dist/server/counters.js'
import { DataPlane } from '../../dist/server/data/data-plane.js'
import { openDnsListener } from '../../dist/server/dns-listener.js'
import { Supervisor } from '../../dist/server/supervisor.js'
import { tcpDriver } from '../../dist/transport/tcp-driver.js'
import { loadLibc } from '../../dist/transport/udp/batch/libc.js'
import { DIRECTIVES, opened } from './direct-directive.mjs'
import { bulkName, ZONE } from './manifests.mjs'

const [port, names, threads] = process.argv.slice(2).map(Number)
const TYPE_A = 1

const stderr = { isBusy: () => false, write: (octets) => process.stderr.write(octets.toString()) }
const lines = new LineBuffer(stderr, (run) => run())
const sink = (line) => printLine(lines, line)
const log = createLogger('', sink, () => false)
const counts = new ServerCounts()
const totals = new ServerTotals(counts)
const cookieKey = new Uint8Array(16)
const plane = new DataPlane({
  libc: loadLibc(),
  start: (init, messages) =>
    new Worker(new URL('./direct-thread.mjs', import.meta.url), {
      workerData: { init, port: messages },
      transferList: [messages],
      resourceLimits: { maxYoungGenerationSizeMb: 4 },
    }),
  socketsDefault: threads,
  dnsPort: port,
  cookieKey,
  totals,
  counts,
  lines,
  log,
  timers: systemTimers,
  takesOver: false,
})
const shared = { clock: systemClock, random: new Random(1), log, counters: counts }
const text = `${ZONE}:${port} {\n bind 127.0.0.1\n multisocket ${threads}\n minimal\n direct\n}\n`
const supervisor = new Supervisor(
  { kind: 'text', name: 'Corefile', text },
  {
    loadDirectives: async () => DIRECTIVES,
    directiveNames: DIRECTIVES.map(({ name }) => name),
    dnsPort: port,
    env: {},
    clock: systemClock,
    metrics: new MetricsRegistry(),
    serverCounters: totals,
    sink,
    lines,
    openDns: (plan) =>
      openDnsListener(plan, {
        ...shared,
        cookies: new CookieJar(cookieKey),
        drivers: [plane, tcpDriver()],
      }),
    openHttp: () => Promise.reject(new Error('no HTTP here')),
    dataThreads: plane,
  },
)
await supervisor.start()
const { image, zone } = opened

function put(name, address) {
  const rdata = [Uint8Array.from(address)]
  image.putRRset(zone, scanName(`${name}.`), { type: TYPE_A, ttlSeconds: 60, rdata })
}

for (let i = 0; i < names; i++) put(bulkName(i), [10, i >> 16, i >> 8, i])
put(`one.${ZONE}`, [192, 0, 2, 0])
image.publish()
process.send({ isReady: true })

/** One publish for each change; as many as are due when the timer gets its turn. */
let timer
let done = 0
function change(perSecond) {
  clearInterval(timer)
  if (perSecond === 0) return
  const startMs = performance.now()
  let since = 0
  timer = setInterval(() => {
    const due = ((performance.now() - startMs) / 1000) * perSecond
    for (; since < due; since++, done++) {
      const i = (done * 7919) % names
      put(bulkName(i), [11, done >> 16, done >> 8, done])
      image.publish()
    }
  }, 1)
}

process.on('message', ({ put: version, perSecond }) => {
  if (perSecond !== undefined) {
    change(perSecond)
    process.send({ done, swaps: opened.swaps })
    return
  }
  const startNs = process.hrtime.bigint()
  put(`one.${ZONE}`, [192, 0, 2, version % 256])
  image.publish()
  process.send({ startNs: String(startNs), endNs: String(process.hrtime.bigint()) })
})
process.once('disconnect', () => process.exit(0))
