import type { OctetReader, OctetWriter } from './octets.ts'

/** One field of a record's text, as in the file: with escapes, without quotes. */
export interface RdataField {
  readonly text: string
  readonly quoted: boolean
}

/** Why text is not valid rdata of its type: a lower-case sentence without a full stop. */
export class RdataError {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

/**
 * One part of a type's rdata. A type is a list of parts; scanner, printer and parser iterate over
 * it. `parse` rejects octets that `print` could not write so that `scan` restores them.
 */
export interface RdataPart {
  /** Copies the part from a packet, validated and decompressed; returns false if it is malformed. */
  readonly parse: (input: OctetReader, output: OctetWriter) => boolean
  /** Returns the text of the part, from octets that `parse` accepted; '' if the part is absent. */
  readonly print: (input: OctetReader) => string
  /** Parses the part's text; returns an error message, or undefined on success. */
  readonly scan: (input: FieldReader, output: OctetWriter) => string | undefined
}

/** Iterates over the fields of one record's text. */
export class FieldReader {
  /** Completes relative names. */
  readonly origin: Uint8Array
  readonly #fields: readonly RdataField[]
  #next = 0

  constructor(fields: readonly RdataField[], origin: Uint8Array) {
    this.#fields = fields
    this.origin = origin
  }

  get remaining(): number {
    return this.#fields.length - this.#next
  }

  peek(): RdataField | undefined {
    return this.#fields[this.#next]
  }

  next(): RdataField | undefined {
    const field = this.#fields[this.#next]
    if (field !== undefined) this.#next += 1
    return field
  }

  /** Returns the remaining fields. */
  rest(): readonly RdataField[] {
    const fields = this.#fields.slice(this.#next)
    this.#next = this.#fields.length
    return fields
  }
}

/** Returns the usual error message. Quotes and shortens the text, so that it is safe in a log. */
export function expected(what: string, field: RdataField | undefined): string {
  if (field === undefined) return `expected ${what}, found nothing`
  return `expected ${what}, found ${JSON.stringify(field.text.slice(0, 80))}`
}
