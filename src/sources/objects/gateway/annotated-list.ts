import { RefusedError } from '../../../records/validate/fields.ts'
import type { ExternalDnsAnnotations } from '../external-dns-annotations.ts'
import type { ObjectProblem, ObjectReference } from '../object-kind.ts'

/** Returns the items of an annotation; none if it is invalid. */
export function listOf(
  externalDns: ExternalDnsAnnotations,
  key: string,
  of: ObjectReference,
  problems: ObjectProblem[],
): readonly string[] {
  try {
    return externalDns.list(key)
  } catch (error) {
    if (!(error instanceof RefusedError)) throw error
    problems.push({ ...error.problem, of })
    return []
  }
}
