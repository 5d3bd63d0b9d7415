import type { OctetReader, OctetWriter } from './octets.ts'

/** One field of a record's text, as written in the file: escapes kept, quotes taken off. */
export interface RdataField {
  readonly text: string
  readonly quoted: boolean
}

/** Why text is not the rdata of its type: a lower-case sentence without a stop. */
export class RdataError {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

/**
 * One part of a type's rdata. A type is a list of parts; scanner, printer and parser walk over it.
 * `parse` refuses whatever `print` could not write so that `scan` reads the same octets back.
 */
export interface RdataPart {
  /** Copies the part from a packet, checked and decompressed; false if it is malformed. */
  readonly parse: (input: OctetReader, output: OctetWriter) => boolean
  /** The text of the part, from octets that `parse` let through; '' for a part that is not there. */
  readonly print: (input: OctetReader) => string
  /** Reads the part's text; returns a complaint, or undefined if all is well. */
  readonly scan: (input: FieldReader, output: OctetWriter) => string | undefined
}

/** Walks over the fields of one record's text. */
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

  /** All fields that are left. */
  rest(): readonly RdataField[] {
    const fields = this.#fields.slice(this.#next)
    this.#next = this.#fields.length
    return fields
  }
}

/** The usual complaint. The text is quoted and cut, so that it can go to a log. */
export function expected(what: string, field: RdataField | undefined): string {
  if (field === undefined) return `expected ${what}, found nothing`
  return `expected ${what}, found ${JSON.stringify(field.text.slice(0, 80))}`
}
