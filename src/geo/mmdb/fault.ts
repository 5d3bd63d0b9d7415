import { InputError } from '../../base/errors.ts'

/** Returns the error for a database that can't be used. `what` continues the sentence "FILE …". */
export function mmdbFault(file: string, what: string, cause?: unknown): InputError {
  return new InputError(undefined, `${file} ${what}`, cause)
}
