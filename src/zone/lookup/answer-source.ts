import type { HashedName } from '../../dns/name/hashed-name.ts'
import type { ZoneAnswerer } from './answer.ts'

/** The zones that a handler answers from. */
export interface AnswerSource {
  /** The directive's name. */
  readonly name: string
  /** True if a name that does not exist in the zones has no other source (`fallthrough`). */
  readonly denies: boolean
  /**
   * A different object whenever `find` may return something else for any query; undefined = it
   * answers no query.
   */
  readonly holder: object | undefined
  /**
   * Labels of the longest zone, of those that `find` distinguishes, at or below the one that the
   * name is in; 0 = it distinguishes none.
   */
  deepestAround(name: HashedName): number
  /** Returns the answerer of the name, if its zone is here and loaded. */
  find(name: HashedName): ZoneAnswerer | undefined
}
