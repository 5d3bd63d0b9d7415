import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { createProber } from '../../../src/health/probes/prober.ts'
import type { HealthCheck } from '../../../src/records/health-check.ts'
import { FakeTimers } from '../../support/setup.ts'
import { until } from '../../support/until.ts'
import { ask, LOCAL, probeOf } from './stage.ts'

const CHECK = {
  protocol: 'EXEC',
  command: 'check',
  port: 8080,
} as const satisfies Partial<HealthCheck>

/** The commands of a Corefile with one script. */
function script(text: string, ...args: readonly string[]) {
  return { commands: new Map([['check', ['/bin/sh', '-c', text, 'sh', ...args]]]) }
}

t.test('the exit code decides', async (t) => {
  t.strictSame(await ask(CHECK, script('exit 0')), { kind: 'healthy', httpStatus: 0 })
  t.strictSame(await ask(CHECK, script('echo secret; echo secret >&2; exit 3')), {
    kind: 'unhealthy',
    httpStatus: 0,
    reason: 'exit code 3',
  })
  t.match(await ask(CHECK, script('kill -TERM $$')), {
    kind: 'unhealthy',
    reason: 'the command ended by SIGTERM',
  })
})

t.test('what a command gets', async (t) => {
  const file = join(t.testdir({}), 'out')
  process.env.SEXTANT_TEST_SECRET = 'x'
  t.teardown(() => delete process.env.SEXTANT_TEST_SECRET)
  const text = 'env | sort > "$1"; pwd >> "$1"; echo "$2" >> "$1"'
  const options = script(text, file, 'a; "b" $HOME')
  t.match(await ask({ ...CHECK, hostname: 'app.example.org' }, options), { kind: 'healthy' })
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
  t.strictSame(lines.slice(-2), ['/', 'a; "b" $HOME'], 'no shell reads the arguments')
  // The shell and the test runner add others.
  const names = lines.filter((line) => /^(PATH|HOME|USER|SEXTANT\w*)=/.test(line))
  t.strictSame(names, [
    'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    'SEXTANT_PROBE_ADDRESS=127.0.0.1',
    'SEXTANT_PROBE_HOST=app.example.org',
    'SEXTANT_PROBE_PORT=8080',
  ])
})

t.test('a command that cannot be run says nothing about the address', async (t) => {
  const lost = { commands: new Map([['check', ['/nonexistent/program']]]) }
  t.strictSame(await ask(CHECK, lost), {
    kind: 'skipped',
    reason: 'command check cannot be started: ENOENT',
  })
  t.strictSame(await ask(CHECK), {
    kind: 'skipped',
    reason: 'no command check is configured with probe-exec',
  })
  const tooLong = { commands: new Map([['check', ['/bin/true', 'a'.repeat(1 << 20)]]]) }
  t.match(await ask(CHECK, tooLong), {
    kind: 'skipped',
    reason: /^command check cannot be started/,
  })
  const file = join(t.testdir({}), 'ran')
  const touch = script(': > "$1"', file)
  t.match(await ask({ ...CHECK, address: '169.254.169.254' }, touch), { kind: 'skipped' })
  t.notOk(existsSync(file), 'addresses that are never probed are not given to a command')
})

/** True while a process runs; a zombie has ended. */
function isRunning(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

t.test('a command that has ended leaves no process behind', async (t) => {
  const file = join(t.testdir({}), 'pid')
  const options = script('sleep 1000 & echo $! > "$1"', file)
  t.match(await ask(CHECK, options), { kind: 'healthy' })
  const pid = Number(readFileSync(file, 'utf8'))
  await until(() => !isRunning(pid), 'the process to end')
})

t.test('the time-out and the end of probing end the command and its children', async (t) => {
  for (const how of ['time-out', 'abort'] as const) {
    const file = join(t.testdir({}), how)
    const timers = new FakeTimers()
    const abort = new AbortController()
    const { commands } = script('sleep 1000 & echo $$ $! > "$1.new"; mv "$1.new" "$1"; wait', file)
    const env = { policy: LOCAL, readHeaders: undefined, commands, timers }
    const prober = createProber({ ...env, resolve: async () => ({ kind: 'none' }) })
    const probing = prober(probeOf(CHECK), abort.signal)
    await until(() => existsSync(file), 'the command')
    const pids = readFileSync(file, 'utf8').trim().split(' ').map(Number)
    t.strictSame(pids.map(isRunning), [true, true], how)
    if (how === 'abort') abort.abort()
    else await timers.advance(8000)
    const want = { kind: how === 'abort' ? 'skipped' : 'unhealthy' }
    t.match(await probing, want)
    await until(() => !pids.some(isRunning), 'the processes to end')
  }
})
