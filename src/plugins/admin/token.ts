import { createHash, timingSafeEqual } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { InputError } from '../../base/errors.ts'
import { WatchedFiles } from './watched-files.ts'

/** Shorter tokens could be guessed. */
const TOKEN_CHARACTERS_MIN = 32
const TOKEN_CHARACTERS_MAX = 4096
/** `b64token` (RFC 6750 section 2.1). */
const TOKEN = /^[\w.~+/-]+=*$/
const CREDENTIALS = /^Bearer +([\w.~+/-]+=*) *$/i

/** The bearer token in a file. A changed file counts from the next request on. No message contains the token. */
export class TokenFile {
  readonly #path: string
  readonly #file: WatchedFiles
  /** SHA-256; undefined = the file has no valid token, and every request is refused. */
  #digest: Buffer | undefined
  #fault = ''

  constructor(path: string) {
    this.#path = path
    this.#file = new WatchedFiles([path])
  }

  /** Why the file has no valid token; '' = it has one. */
  get fault(): string {
    this.#catchUp()
    return this.#fault
  }

  /** Throws InputError if the file has no valid token. */
  check(): void {
    this.#catchUp()
    if (this.#fault !== '') throw new InputError(undefined, this.#fault)
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
      this.#fault = faultOf(this.#path, token)
      this.#digest = this.#fault === '' ? digestOf(token) : undefined
    } catch (error) {
      this.#fault = `token ${this.#path}: ${error instanceof Error ? error.message : error}`
      this.#digest = undefined
    }
  }
}

/** Returns the token in a file for a client. Throws InputError if the file has none. */
export function readToken(path: string): string {
  const token = readFileSync(path, 'utf8').trim()
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
