import { quote, RefusedError, stringField } from '../validate/fields.ts'
import type { CheckKind } from './check-kind.ts'

interface ExecPart {
  /** Name of the command in the Corefile. */
  readonly command: string
}

/** Names of commands in a Corefile. */
export const COMMAND_NAME = /^[A-Za-z0-9][\w.-]{0,62}$/

/** EXEC, which runs a command that the server's configuration has. An extension. */
export const EXEC_CHECK: CheckKind<ExecPart> = {
  fields: ['command'],
  sendsHostName: false,
  scan: (spec, place) => {
    const command = stringField(spec, 'command', place)
    if (COMMAND_NAME.test(command)) return { command }
    const message = `command must be a name that probe-exec defines in the Corefile, got ${quote(command)}`
    throw new RefusedError(place.at('command'), message)
  },
}
