/** A place in a configuration file: `line` counts from 1. */
export interface Position {
  readonly file: string
  readonly line: number
}

/** Longest message, in characters. A message contains the invalid input, which may have megabytes. */
const MESSAGE_MAX = 2000
/** Characters kept from the end of a longer message: the end says how to fix the fault. */
const MESSAGE_TAIL = 500

/** Invalid operator input: the place, and a message that says how to fix it. */
export class InputError extends Error {
  readonly position: Position | undefined

  constructor(position: Position | undefined, message: string, cause?: unknown) {
    super(clip(message), cause === undefined ? undefined : { cause })
    this.name = 'InputError'
    this.position = position
  }

  /** Returns this error, and all that were found together with it. */
  all(): readonly InputError[] {
    return [this]
  }

  /** `file:line: message`, or only the message if the place is unknown. */
  print(): string {
    const at = this.position
    return at === undefined ? this.message : `${at.file}:${at.line}: ${this.message}`
  }
}

function clip(message: string): string {
  const tooMany = message.length - MESSAGE_MAX
  if (tooMany <= 0) return message
  const head = message.slice(0, MESSAGE_MAX - MESSAGE_TAIL)
  return `${head} […${tooMany} characters…] ${message.slice(-MESSAGE_TAIL)}`
}

/** Several faults that were found together. Acts as the first one if only one can be shown. */
export class InputErrors extends InputError {
  readonly #errors: readonly InputError[]

  constructor(first: InputError, others: readonly InputError[]) {
    super(first.position, first.message, first.cause)
    this.#errors = [first, ...others]
  }

  override all(): readonly InputError[] {
    return this.#errors
  }
}

/** A warning that a server block lacks a directive. It may mislead if a directive is invalid. */
export class AbsentDirectiveWarning extends InputError {}
