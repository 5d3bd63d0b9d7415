import { spawn } from 'node:child_process'
import type { Dispenser } from '../../corefile/dispenser.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { splitCommand } from './split-command.ts'

type Event = 'startup' | 'shutdown' | 'certrenew'

const EVENTS: readonly string[] = ['startup', 'shutdown', 'certrenew'] satisfies Event[]
/** As the last word of a command: do not wait for its end. */
const BACKGROUND = '&'

interface Command {
  readonly event: string
  readonly words: readonly string[]
  readonly isBackground: boolean
}

/** `on EVENT COMMAND...`: runs programs when the server starts or ends. */
export const on: Directive = {
  name: 'on',
  setup(c) {
    const commands = scanCommands(c.dispenser)
    for (const { event } of commands) {
      if (event !== 'certrenew') continue
      c.warn('this server renews no certificates: certrenew never happens', c.dispenser.position())
    }
    const runAll = async (wanted: Event): Promise<void> => {
      for (const command of commands) {
        if (command.event !== wanted) continue
        const ended = run(c, command)
        if (!command.isBackground) await ended
      }
    }
    return { serving: () => void runAll('startup'), exit: () => runAll('shutdown') }
  },
}

function scanCommands(d: Dispenser): Command[] {
  const commands: Command[] = []
  while (d.next()) {
    const [name = '', ...args] = d.remainingArgs(1)
    const event = name.toLowerCase()
    if (!EVENTS.includes(event)) {
      throw d.error(`unknown event ${JSON.stringify(name)}; expect ${EVENTS.join(', ')}`)
    }
    const line = args.join(' ')
    const words = splitCommand(line)
    if (words === undefined) throw d.error(`a quote has no end in the command ${line}`)
    const isBackground = words.at(-1) === BACKGROUND
    if (isBackground) words.pop()
    if (words.length === 0) throw d.error(`no command after ${name}`)
    commands.push({ event, words, isBackground })
  }
  return commands
}

/** Resolves when the program has ended, or could not be started. Logs a failure. */
function run({ log }: SetupContext, { event, words }: Command): Promise<void> {
  const [program = '', ...args] = words
  log.info(`${event}: running ${words.join(' ')}`, 'on-command-started')
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'] })
    child.once('error', ({ message }) => {
      log.error(`${event}: ${program} was not started: ${message}`, 'on-command-failed')
      resolve()
    })
    child.once('exit', (code, signal) => {
      if (code !== 0)
        log.error(
          `${event}: ${program} ended with ${signal ?? `status ${code}`}`,
          'on-command-failed',
        )
      resolve()
    })
  })
}
