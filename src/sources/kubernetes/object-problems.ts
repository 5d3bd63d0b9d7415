import { InputError } from '../../base/errors.ts'
import type { ProblemText } from '../../base/telemetry/problems.ts'
import { printPath } from '../../records/validate/fields.ts'
import type { ObjectProblem } from '../objects/object-kind.ts'
import { CLUSTER_PLACE } from './place.ts'

/** Why objects of other kinds are refused, or not used in part. */
export class ObjectProblems {
  /** By key of the object that gives the records. */
  readonly #held = new Map<string, readonly ProblemText[]>()

  /** Number of objects with problems. */
  get count(): number {
    return this.#held.size
  }

  /** Replaces the problems of an object; empty = none. Returns those that are new. */
  set(key: string, problems: readonly ObjectProblem[]): InputError[] {
    const before = new Set(this.#held.get(key)?.map(({ reason }) => reason))
    if (problems.length === 0) this.#held.delete(key)
    else this.#held.set(key, problems.map(textOf))
    const fresh = new Set(problems.map((one) => textOf(one).reason))
    return [...fresh].filter((reason) => !before.has(reason)).map(errorOf)
  }

  all(): InputError[] {
    return [...this.#texts()].map(({ reason }) => errorOf(reason))
  }

  list(): Iterable<ProblemText> {
    return this.#texts()
  }

  /** Several objects may have the problem of another one, such as that of a route with two Gateways. */
  *#texts(): Generator<ProblemText> {
    const seen = new Set<string>()
    for (const problems of this.#held.values()) {
      for (const problem of problems) {
        if (seen.has(problem.reason)) continue
        seen.add(problem.reason)
        yield problem
      }
    }
  }
}

function textOf({ of, path, message }: ObjectProblem): ProblemText {
  const object = `${of.kind} ${of.namespace}/${of.name}`
  const at = path.length === 0 ? '' : `${printPath(path)}: `
  return { place: CLUSTER_PLACE, object, reason: `${object}: ${at}${message}` }
}

function errorOf(reason: string): InputError {
  return new InputError(undefined, reason)
}
