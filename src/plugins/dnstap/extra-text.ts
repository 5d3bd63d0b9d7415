import type { Metadata } from '../../plugin/metadata.ts'
import type { Transaction } from '../../plugin/transaction.ts'

/** `{/LABEL}` with its label. */
const FIELD = /\{\/([^{}]+)\}/
const OTHER_FIELD = /\{>?[a-z]+\}/g
/** As in `log`, if a label is unknown. */
const UNKNOWN = '-'

/** A text with metadata labels. */
export class ExtraText {
  /** Texts and labels in turn: a text, a label, a text. */
  readonly #parts: readonly string[]
  readonly #metadata: Metadata

  constructor(text: string, metadata: Metadata) {
    this.#parts = text.split(FIELD)
    this.#metadata = metadata
    for (const label of this.#labels()) metadata.read.add(label)
  }

  /** True if the text is the same for all queries. */
  get isConstant(): boolean {
    return this.#parts.length === 1
  }

  print(tx: Transaction): string {
    return this.#parts.map((part, i) => (i % 2 === 0 ? part : this.#value(part, tx))).join('')
  }

  #value(label: string, tx: Transaction): string {
    const value = this.#metadata.find(label)?.(tx) ?? ''
    return value === '' ? UNKNOWN : value
  }

  #labels(): string[] {
    return this.#parts.filter((_, i) => i % 2 === 1)
  }
}

/** Returns the fields of `log` in a text, which `ExtraText` prints unchanged. */
export function otherFields(text: string): readonly string[] {
  return text.match(OTHER_FIELD) ?? []
}
