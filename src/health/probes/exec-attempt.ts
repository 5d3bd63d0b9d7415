import { type ChildProcess, spawn } from 'node:child_process'
import type { Attempt, Begin } from './begin.ts'
import { hasCode, printFault } from './print-fault.ts'
import type { ProbeOutcome } from './probe.ts'

/** The environment of the server may contain secrets, so commands do not get it. */
const SEARCH_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * Runs a command of the Corefile without a shell, in a process group of its own, which ends with it.
 * Exit code 0 is healthy. Its output is discarded.
 */
export const beginExec: Begin<'EXEC'> = (attempt, { onDone }) => {
  const skip = (error: Error): void => {
    const reason = `command ${attempt.check.command} cannot be started: ${printFault(error)}`
    onDone({ kind: 'skipped', reason })
  }
  const child = start(attempt)
  if (child instanceof Error) {
    queueMicrotask(() => skip(child))
    return () => {}
  }
  let isRunning = true
  child.once('error', (error) => {
    isRunning = false
    skip(error)
  })
  child.once('exit', (code, signal) => {
    isRunning = false
    killGroup(child)
    onDone(outcomeOf(code, signal))
  })
  return () => {
    if (isRunning) killGroup(child)
  }
}

/** Returns the process, or why it cannot be created. */
function start({ ip, check, hostname, command }: Attempt<'EXEC'>): ChildProcess | Error {
  const [program = '', ...args] = command
  const env = {
    PATH: SEARCH_PATH,
    SEXTANT_PROBE_ADDRESS: ip,
    SEXTANT_PROBE_PORT: String(check.port),
    SEXTANT_PROBE_HOST: hostname,
  }
  try {
    return spawn(program, args, { cwd: '/', detached: true, env, stdio: 'ignore' })
  } catch (error) {
    if (!(error instanceof Error)) throw error
    return error
  }
}

function outcomeOf(code: number | null, signal: string | null): ProbeOutcome {
  if (code === 0) return { kind: 'healthy', httpStatus: 0 }
  const reason = code === null ? `the command ended by ${signal}` : `exit code ${code}`
  return { kind: 'unhealthy', httpStatus: 0, reason }
}

/** Ends the command, and all processes of its group: each attempt could leave one behind. */
function killGroup({ pid }: ChildProcess): void {
  // The process was not created.
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // ESRCH: it has ended. EPERM: it runs as another user.
    if (!hasCode(error)) throw error
  }
}
