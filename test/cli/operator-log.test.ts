import { spawn } from 'node:child_process'
import { join } from 'node:path'
import t from 'tap'
import { root } from '../support/server.ts'
import { until } from '../support/until.ts'

const KUBECONFIG = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  // Nothing listens there.
  clusters: [{ name: 'c', cluster: { server: 'http://127.0.0.1:1' } }],
  users: [{ name: 'u', user: {} }],
  contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
  'current-context': 'x',
})
const STARTED = 'operator-started'

const TABLE: readonly { flags: readonly string[]; started: RegExp; hasDebug?: boolean }[] = [
  {
    flags: ['-log-format', 'json'],
    started: /^\{"time":"2\d{3}-[\d-]+T[\d:.]+Z","level":"INFO","msg":"[^"]+","event":"\S+"\}$/,
  },
  {
    flags: ['--zap-encoder', 'json', '--zap-time-encoding', 'epoch'],
    started: /^\{"level":"info","ts":[\d.]+,"msg":"[^"]+","event":"\S+"\}$/,
  },
  {
    flags: ['--zap-encoder', 'console', '--zap-log-level', 'debug'],
    started: /^2\d{3}-[\d-]+T[\d:]+Z\tINFO\t[^\t]+\t\{"event":"\S+"\}$/,
    hasDebug: true,
  },
]

for (const { flags, started, hasDebug = false } of TABLE) {
  t.test(`sextant operator ${flags.join(' ')}`, async (t) => {
    const kubeconfig = join(t.testdir({ kubeconfig: KUBECONFIG }), 'kubeconfig')
    const addresses = ['metrics', 'health-probe'].map((one) => `--${one}-bind-address=127.0.0.1:0`)
    const args = ['operator', '--kubeconfig', kubeconfig, ...addresses, ...flags]
    const child = spawn(process.execPath, [join(root, 'dist/main.js'), ...args])
    t.teardown(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (output += part))
    const ended = new Promise((resolve) => child.on('close', resolve))
    // It is written after the lines about the start.
    await until(() => output.includes('watch-failed'), 'a watch that failed')
    if (hasDebug) await until(() => /\tDEBUG\t/.test(output), 'a line for debugging')
    child.kill('SIGTERM')
    t.equal(await ended, 0, output)
    const lines = output.split('\n').filter((line) => line.includes(STARTED))
    t.match(lines, [started], output)
    t.equal(/\bdebug\b/i.test(output), hasDebug, output)
  })
}
