import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { DIRECTIVES } from '../plugins/order.ts'
import { describe, Supervisor } from '../server/supervisor.ts'
import { createLogger, type Logger } from '../telemetry/log.ts'
import { type ServeArgs, scanServeArgs } from './args.ts'
import { composeParts } from './compose.ts'
import { chooseCorefile } from './corefile.ts'
import { exampleLines } from './example-lines.ts'
import type { Output } from './output.ts'
import { startLines } from './start-lines.ts'
import { versionLines } from './version-lines.ts'

/**
 * `sextant serve`: runs a DNS server until a signal ends it. Resolves to the exit code: 0, 1 = did not
 * start, 2 = interrupted twice, 3 = a socket did not close, 4 = a shutdown hook failed.
 */
export async function serve(argv: readonly string[], output: Output): Promise<number> {
  const args = scanServeArgs(argv)
  if (typeof args === 'string') return refuse(output, args)
  if (args.version) return printLines(output, versionLines())
  if (args.plugins) return printLines(output, pluginLines())
  const log = createLogger('', output.print, () => false)
  const ended = new Promise<number>((resolve) => {
    run(args, output, log, resolve).catch((error) => resolve(refuse(output, describe(error))))
  })
  const code = await ended
  if (args.pidfile !== undefined) removePidfile(args.pidfile)
  return code
}

function refuse(output: Output, message: string): number {
  output.printError(message)
  return 1
}

function printLines(output: Output, lines: readonly string[]): number {
  for (const line of lines) output.print(line)
  return 0
}

/** What CoreDNS prints for `-plugins`. */
function pluginLines(): string[] {
  const names = DIRECTIVES.map(({ name }) => `  dns.${name}`).sort()
  return ['Server types:', '  dns', '', 'Other plugins:', ...names]
}

/** Starts, and lets `end` know once everything is over. */
async function run(
  args: ServeArgs,
  output: Output,
  log: Logger,
  end: (code: number) => void,
): Promise<void> {
  const source = chooseCorefile(args.conf, args.dnsPort)
  const supervisor = new Supervisor(source, composeParts(args.dnsPort, output.lines, args))
  handleSignals(supervisor, log, end)
  await supervisor.start()
  if (args.pidfile !== undefined) writePidfile(args.pidfile, log)
  if (args.quiet) return
  printLines(output, [...startLines(supervisor.plans), ...versionLines()])
  if (args.examples) printLines(output, exampleLines(supervisor.plans))
}

const PIDFILE_TEXT = `${process.pid}\n`

/** Whoever took over from us has written its own there by now. */
function removePidfile(path: string): void {
  try {
    if (readFileSync(path, 'utf8') === PIDFILE_TEXT) rmSync(path)
  } catch {
    // It is gone, or never could be written: there is nothing to remove.
  }
}

function writePidfile(path: string, log: Logger): void {
  try {
    writeFileSync(path, PIDFILE_TEXT)
  } catch (error) {
    log.error(`Could not write pidfile: ${describe(error)}`)
  }
}

/**
 * As CoreDNS: TERM and INT stop, the second INT at once; QUIT leaves without stopping; USR1 reloads;
 * HUP does nothing. USR2, where CoreDNS replaces its binary, reloads too.
 */
function handleSignals(supervisor: Supervisor, log: Logger, end: (code: number) => void): void {
  let interrupts = 0
  const stop = (): void => {
    supervisor.stop().then(end)
  }
  const reload = (signal: string) => (): void => {
    log.info(`${signal}: Reloading`)
    supervisor.reload().catch((error) => log.error(describe(error)))
  }
  process.on('SIGTERM', () => {
    log.info('SIGTERM: Shutting down servers then terminating')
    stop()
  })
  process.on('SIGINT', () => {
    interrupts++
    if (interrupts > 1) {
      log.info('SIGINT: Force quit')
      end(2)
      return
    }
    log.info('SIGINT: Shutting down')
    stop()
  })
  process.on('SIGQUIT', () => {
    log.info('SIGQUIT: Quitting process immediately')
    end(0)
  })
  process.on('SIGUSR1', reload('SIGUSR1'))
  process.on('SIGUSR2', reload('SIGUSR2'))
  process.on('SIGHUP', () => {})
}
