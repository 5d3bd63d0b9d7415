import { InputError, type Position } from '../base/errors.ts'

/** Reports a source that can't be opened as a fault of the line that names it. */
export function faultAt(position: Position): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof InputError)) throw error
    const message = `${position.file}:${position.line} - Error during parsing: ${error.print()}`
    throw new InputError(position, message, error)
  }
}
