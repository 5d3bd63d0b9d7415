import type { Glob } from './glob.ts'

/**
 * A rule that selects names. `suffix` is a name in lower-case wire form, up to the root. Names that
 * a selector selects end with its suffix. The kinds differ in what may stand before it:
 *
 *     exact      nothing
 *     one-label  exactly one label, of any octets
 *     many-label one or more labels, of any octets
 *     pattern    labels of letters, digits, - and _ : one for each glob, and with `isDeep` one or
 *                more before these
 *     all        no suffix: every name of such labels, and the root
 */
export type Selector = SelectorForm & {
  /** Normalised text, unique among all selectors. */
  readonly key: string
  /** The text as the policy has it. */
  readonly text: string
}

type SelectorForm =
  | { readonly kind: 'exact' | 'one-label' | 'many-label'; readonly suffix: Uint8Array }
  | {
      readonly kind: 'pattern'
      readonly suffix: Uint8Array
      /** Leftmost first. */
      readonly globs: readonly Glob[]
      readonly isDeep: boolean
    }
  | { readonly kind: 'all'; readonly suffix: Uint8Array }
