import { createHash, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import type { AdminRole, AdminTokens } from '../../plugin/admin.ts'
import { WatchedFiles } from './watched-files.ts'

/** Shorter tokens could be guessed. */
const TOKEN_CHARACTERS_MIN = 32
const TOKEN_CHARACTERS_MAX = 4096
/** `b64token` (RFC 6750 section 2.1). */
const TOKEN = /^[\w.~+/-]+=*$/
const CREDENTIALS = /^Bearer +([\w.~+/-]+=*) *$/i

/** The bearer token in a file. A changed file counts from the next request on. No message contains the token. */
class TokenFile {
  readonly path: string
  readonly #file: WatchedFiles
  /** SHA-256; undefined = the file has no valid token, and every request is refused. */
  #digest: Buffer | undefined
  #fault = ''

  constructor(path: string) {
    this.path = path
    this.#file = new WatchedFiles([path])
  }

  /** Why the file has no valid token; '' = it has one. */
  get fault(): string {
    this.#catchUp()
    return this.#fault
  }

  /** True if both files have the same valid token. */
  equals(other: TokenFile): boolean {
    this.#catchUp()
    other.#catchUp()
    return this.#digest !== undefined && other.#digest?.equals(this.#digest) === true
  }

  /** True if an `Authorization` header has the token. Takes the same time for every wrong token. */
  accepts(header: string | undefined): boolean {
    this.#catchUp()
    const presented = CREDENTIALS.exec(header ?? '')?.[1]
    if (this.#digest === undefined || presented === undefined) return false
    return timingSafeEqual(this.#digest, digestOf(presented))
  }

  #catchUp(): void {
    try {
      const [text] = this.#file.readChanged() ?? []
      if (text === undefined) return
      const token = text.trim()
      this.#fault = faultOf(this.path, token)
      this.#digest = this.#fault === '' ? digestOf(token) : undefined
    } catch (error) {
      this.#fault = `token ${this.path}: ${error instanceof Error ? error.message : error}`
      this.#digest = undefined
    }
  }
}

/** The tokens of an admin API, by role. */
export class TokenFiles implements AdminTokens {
  readonly #files: Readonly<Partial<Record<AdminRole, TokenFile>>>

  /** `paths`: '' = the role has no token. */
  constructor(paths: Readonly<Record<AdminRole, string>>) {
    this.#files = {
      ...(paths.operate === '' ? {} : { operate: new TokenFile(paths.operate) }),
      ...(paths.view === '' ? {} : { view: new TokenFile(paths.view) }),
    }
  }

  /** As the constructor; undefined = no role has a token. */
  static open(paths: Readonly<Record<AdminRole, string>>): TokenFiles | undefined {
    return Object.values(paths).every((path) => path === '') ? undefined : new TokenFiles(paths)
  }

  get fault(): string {
    return this.faults.map(({ reason }) => reason).join('; ')
  }

  /** The files that can't be used. */
  get faults(): readonly { readonly path: string; readonly reason: string }[] {
    const { view, operate } = this.#files
    const faults = [operate, view].flatMap((file) => {
      return file === undefined || file.fault === ''
        ? []
        : [{ path: file.path, reason: file.fault }]
    })
    if (faults.length > 0 || view === undefined || operate?.equals(view) !== true) return faults
    const reason = `token ${view.path} is the token of the role operate: write another one`
    return [{ path: view.path, reason }]
  }

  /** Throws InputError if a file can't be used. */
  check(): void {
    const [first] = this.faults
    if (first !== undefined) throw new InputError(undefined, first.reason)
  }

  roleOf(header: string | undefined): AdminRole | undefined {
    const { view, operate } = this.#files
    const [mayView, mayOperate] = [view?.accepts(header), operate?.accepts(header)]
    // A token of both roles has the smaller one, until the files are corrected.
    if (mayView === true) return 'view'
    return mayOperate === true ? 'operate' : undefined
  }
}

/** Returns the token in a file for a client. Throws InputError if the file has none. */
export function readToken(path: string): string {
  return scanToken(path, readFileSync(path, 'utf8'))
}

/** Returns the token in the text of a file for a client. Throws InputError if it has none. */
export function scanToken(path: string, text: string): string {
  const token = text.trim()
  if (TOKEN.test(token)) return token
  throw new InputError(undefined, `${path} has no token`)
}

function faultOf(path: string, token: string): string {
  if (token.length < TOKEN_CHARACTERS_MIN) {
    const advice = `write at least ${TOKEN_CHARACTERS_MIN}, such as from \`openssl rand -hex 32\``
    return `token ${path} has ${token.length} characters: ${advice}`
  }
  if (token.length <= TOKEN_CHARACTERS_MAX && TOKEN.test(token)) return ''
  return `token ${path} must be one line of letters, digits and -._~+/=`
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest()
}
