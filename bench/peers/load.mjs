// Load: our generator in batches, or dnsperf, which takes more CPU per query than fast servers do.
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CLIENTS } from './content.mjs'
import { endedChildrenUs } from './server-process.mjs'

/** Slow enough that every server keeps up: latency without a queue in front of it. */
const LATENCY_QPS = 2000

const GENERATOR = join(dirname(fileURLToPath(import.meta.url)), 'generator.mjs')

/** Queries/s with `outstanding` queries always under way; and what that cost the generator. */
export async function saturate(target, seconds) {
  const before = endedChildrenUs()
  const result = await (target.generator === 'dnsperf' ? bySaturatedDnsperf : byGenerator)(
    target,
    seconds,
  )
  return { ...result, loadCores: (endedChildrenUs() - before) / 1e6 / seconds }
}

async function byGenerator(target, seconds) {
  const { port, file, ecs, clients, outstanding, generator, rcode = 0, source = '' } = target
  const window = Math.max(1, Math.round(outstanding / clients))
  const form = target.form ?? (ecs ? 'ecs' : 'plain')
  const args = [GENERATOR, file, port, seconds, clients, window, form, generator, rcode, source]
  const { wrong, ...result } = JSON.parse(await run(process.execPath, args))
  if (wrong > 0) throw new Error(`${wrong} of ${result.completed} answers were wrong`)
  return result
}

async function bySaturatedDnsperf(target, seconds) {
  const { clients, threads, outstanding } = target
  const report = await dnsperf(target, [
    ...['-l', seconds, '-c', clients, '-T', threads, '-q', outstanding],
  ])
  return {
    completed: field(report, /Queries completed:\s+(\d+)/),
    lost: field(report, /Queries lost:\s+(\d+)/),
    qps: field(report, /Queries per second:\s+([\d.]+)/),
  }
}

/** Microseconds that answers take at a fixed, low rate. */
export async function latency(target, seconds) {
  const { latencyClients = 1 } = target
  const rate = ['-c', latencyClients, '-T', 1, '-Q', LATENCY_QPS]
  const report = await dnsperf(target, ['-v', '-l', seconds, ...rate])
  const times = Array.from(report.matchAll(/^> NOERROR .* ([\d.]+)$/gm), (line) => Number(line[1]))
  if (times.length === 0) throw new Error(`no latencies in: ${report.slice(0, 500)}`)
  times.sort((a, b) => a - b)
  const at = (share) => times[Math.floor((times.length - 1) * share)] * 1e6
  return { p50Us: at(0.5), p99Us: at(0.99) }
}

function dnsperf({ port, file, ecs }, options) {
  // Family 1, source /24, scope 0, three octets of address (RFC 7871, section 6).
  const subnet = `8:00011800${Buffer.from(CLIENTS.EU).toString('hex')}`
  const args = ['-s', '127.0.0.1', '-p', port, '-d', file, ...(ecs ? ['-E', subnet] : [])]
  return run('dnsperf', [...args, ...options])
}

/** Resolves with what the command printed. */
export function run(command, args) {
  const child = spawn(command, args.map(String), { stdio: ['ignore', 'pipe', 'ignore'] })
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  return new Promise((resolve, reject) => {
    const chunks = []
    child.stdout.on('data', (chunk) => chunks.push(chunk))
    child.once('error', reject)
    child.once('close', (code) => {
      process.off('exit', kill)
      if (code === 0) resolve(Buffer.concat(chunks).toString())
      else reject(new Error(`${command} ended with ${code}`))
    })
  })
}

export function field(report, pattern) {
  const match = pattern.exec(report)
  if (match === null) throw new Error(`dnsperf did not print ${pattern}: ${report}`)
  return Number(match[1])
}
