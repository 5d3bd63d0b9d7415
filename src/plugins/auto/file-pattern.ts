/** Longest file name that is matched: bounds the cost of a pathological expression. */
const NAME_MAX = 255

/** Decides which files of a directory are zone files, and for which origin. */
export class FilePattern {
  readonly #regexp: RegExp
  readonly #template: string

  private constructor(regexp: RegExp, template: string) {
    this.#regexp = regexp
    this.#template = template
  }

  /**
   * `template`: `{1}` or `${1}` stands for the first group. Returns an error text if the pattern is
   * invalid.
   */
  static scan(regexp: string, template: string): FilePattern | string {
    let compiled: RegExp
    let groupCount: number
    try {
      compiled = new RegExp(regexp)
      // The empty alternative always matches, and shows how many groups there are.
      groupCount = (new RegExp(`${regexp}|`).exec('')?.length ?? 1) - 1
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      return `error parsing regexp: ${error.message}`
    }
    if (groupCount === 0) return 'Need at least one sub expression'
    return new FilePattern(compiled, template)
  }

  /** The origin of a file's zone, as text; undefined if the name does not match. */
  origin(fileName: string): string | undefined {
    if (fileName.length > NAME_MAX) return undefined
    const groups = this.#regexp.exec(fileName)
    if (groups === null) return undefined
    return this.#template.replace(/\$?\{(\w+)\}/g, (_, group: string) => {
      return groups[Number(group)] ?? groups.groups?.[group] ?? ''
    })
  }
}

function mustScan(regexp: string, template: string): FilePattern {
  const pattern = FilePattern.scan(regexp, template)
  if (typeof pattern === 'string') throw new Error(`assertion failed: ${pattern}`)
  return pattern
}

/** `db.example.org` is the file of `example.org`. */
export const DEFAULT_PATTERN = mustScan('db\\.(.*)', '{1}')
