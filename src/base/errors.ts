/** A place in a file that a person wrote: `line` counts from 1. */
export interface Position {
  readonly file: string
  readonly line: number
}

/** Longest message, in characters: what was wrong is echoed, and may be megabytes. */
const MESSAGE_MAX = 2000
/** How much of the end of a long one is kept: the cure stands there. */
const MESSAGE_TAIL = 500

/** Bad operator input: a stable code, the place, and a message that says the cure. */
export class InputError extends Error {
  readonly code: string
  readonly position: Position | undefined

  constructor(code: string, position: Position | undefined, message: string, cause?: unknown) {
    super(clip(message), cause === undefined ? undefined : { cause })
    this.name = 'InputError'
    this.code = code
    this.position = position
  }

  /** It, and those that were found along with it. */
  all(): readonly InputError[] {
    return [this]
  }

  /** `file:line: message`, or the message alone where no place is known. */
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

/** Several faults that were found in one go. Stands for the first where only one can be told. */
export class InputErrors extends InputError {
  readonly #errors: readonly InputError[]

  constructor(first: InputError, others: readonly InputError[]) {
    super(first.code, first.position, first.message, first.cause)
    this.#errors = [first, ...others]
  }

  override all(): readonly InputError[] {
    return this.#errors
  }
}
