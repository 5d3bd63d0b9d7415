import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createLogger, type Logger, logForm } from '../base/telemetry/log.ts'
import type { CorefileSource } from '../server/corefile-source.ts'
import { describe, Supervisor } from '../server/supervisor.ts'
import { composeParts } from './compose.ts'
import { chooseCorefile } from './corefile.ts'
import { releaseMemoryAfterStart } from './memory-release.ts'
import type { Output } from './output.ts'
import type { ServeArgs } from './serve-args.ts'
import { endUnusedThreads } from './start-data-thread.ts'
import { startLines } from './start-lines.ts'
import { versionLines } from './version-lines.ts'

/** Names the Corefile of `sextant node` in errors. The command prints it, with the lines that they name. */
const COMPOSED = 'sextant node --print-conf'

/** What to serve, and how. */
interface ServerArgs extends Omit<ServeArgs, 'plugins' | 'version'> {
  /** Serve this Corefile, unless `conf` names one. */
  readonly corefile?: string
}

/** Serves until a signal ends it. Resolves to the exit code, as `serve` does. */
export async function runServer(args: ServerArgs, output: Output): Promise<number> {
  const log = createLogger('', output.print, () => false)
  const ended = new Promise<number>((resolve) => {
    run(args, output, log, resolve).catch((error) => {
      output.printError(describe(error))
      resolve(1)
    })
  })
  const code = await ended
  if (args.pidfile !== undefined) removePidfile(args.pidfile)
  return code
}

/** Starts the server, and calls `end` once it has stopped. */
async function run(
  args: ServerArgs,
  output: Output,
  log: Logger,
  end: (code: number) => void,
): Promise<void> {
  const { conf, corefile, dnsPort } = args
  const source: CorefileSource =
    conf === undefined && corefile !== undefined
      ? { kind: 'text', name: COMPOSED, text: corefile }
      : chooseCorefile(conf, dnsPort)
  const supervisor = new Supervisor(source, composeParts(args.dnsPort, output.lines, args))
  handleSignals(supervisor, log, end)
  // A container that was killed had the same process id. Probes must not find its file.
  if (args.pidfile !== undefined) removePidfile(args.pidfile)
  await supervisor.start()
  endUnusedThreads()
  if (args.pidfile !== undefined) writePidfile(args.pidfile, log)
  releaseMemoryAfterStart(log)
  if (args.quiet) return
  const lines = [...startLines(supervisor.plans), ...versionLines()]
  if (args.examples) {
    const { exampleLines } = await import('./example-lines.ts')
    lines.push(...exampleLines(supervisor.plans))
  }
  const isText = logForm().name === 'text'
  for (const line of lines) {
    if (isText) output.print(line)
    else log.info(line, 'start-line')
  }
}

const PIDFILE_TEXT = `${process.pid}\n`

/** Removes the pidfile, unless it has the id of another process, such as one that took over. */
function removePidfile(path: string): void {
  try {
    if (readFileSync(path, 'utf8') === PIDFILE_TEXT) rmSync(path)
  } catch {
    // The file was removed already, or never written.
  }
}

function writePidfile(path: string, log: Logger): void {
  try {
    writeFileSync(path, PIDFILE_TEXT)
  } catch (error) {
    log.error(`Could not write pidfile: ${describe(error)}`, 'pidfile-write-failed')
  }
}

/**
 * As CoreDNS: TERM and INT stop, the second INT at once; QUIT ends without a graceful stop; USR1
 * reloads; HUP does nothing. USR2, with which CoreDNS replaces its binary, reloads too.
 */
function handleSignals(supervisor: Supervisor, log: Logger, end: (code: number) => void): void {
  let interrupts = 0
  const stop = (): void => {
    void supervisor.stop().then(end)
  }
  const reload = (signal: string) => (): void => {
    log.info(`${signal}: Reloading`, 'signal-reload')
    supervisor.reload().catch((error) => log.error(describe(error), 'reload-failed'))
  }
  process.on('SIGTERM', () => {
    log.info('SIGTERM: Shutting down servers then terminating', 'signal-stop')
    stop()
  })
  process.on('SIGINT', () => {
    interrupts++
    if (interrupts > 1) {
      log.info('SIGINT: Force quit', 'signal-quit')
      end(2)
      return
    }
    log.info('SIGINT: Shutting down', 'signal-stop')
    stop()
  })
  process.on('SIGQUIT', () => {
    log.info('SIGQUIT: Quitting process immediately', 'signal-quit')
    end(0)
  })
  process.on('SIGUSR1', reload('SIGUSR1'))
  process.on('SIGUSR2', reload('SIGUSR2'))
  process.on('SIGHUP', () => {})
}
