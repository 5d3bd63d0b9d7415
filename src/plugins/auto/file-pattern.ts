import { LinearRegExp } from '../../base/re2/linear-regexp.ts'

/** Decides which files of a directory are zone files, and for which origin. */
export class FilePattern {
  readonly #regexp: LinearRegExp
  readonly #template: string

  /** `template`: `{1}` or `${1}` stands for the first group. */
  constructor(regexp: LinearRegExp, template: string) {
    this.#regexp = regexp
    this.#template = template
  }

  /** The origin of a file's zone, as text; undefined if the name does not match. */
  origin(fileName: string): string | undefined {
    const groups = this.#regexp.exec(fileName)
    if (groups === undefined) return undefined
    return this.#template.replace(/\$?\{(\w+)\}/g, (_, group: string) => {
      const index = /^\d+$/.test(group) ? Number(group) : this.#regexp.groupNames.indexOf(group)
      return groups[index] ?? ''
    })
  }
}

/** `db.example.org` is the file of `example.org`. */
export const DEFAULT_PATTERN = new FilePattern(new LinearRegExp('db\\.(.*)'), '{1}')
