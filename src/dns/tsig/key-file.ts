import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { InputError, type Position } from '../../base/errors.ts'
import { readAtMost } from '../../base/read.ts'
import { scanName } from '../name/name.ts'
import { scanBase64 } from '../rdata/binary.ts'
import { ALGORITHM_NAMES, HMAC_SHA256, scanAlgorithm, type TsigAlgorithm } from './algorithm.ts'

/** Sufficient for thousands of keys. */
const FILE_OCTETS_MAX = 1024 * 1024

/** A key in a form that can be sent to other threads. */
export interface KeyConfig {
  readonly name: Uint8Array
  /** `hmac-sha256`. */
  readonly algorithm: string
  readonly secret: Uint8Array
}

interface Token {
  readonly text: string
  readonly line: number
}

/**
 * Reads a file of keys as `tsig-keygen` writes them and BIND, Knot and CoreDNS read them:
 *
 *     key "name." { algorithm hmac-sha256; secret "base64"; };
 *
 * `position`: where the Corefile names the file. Throws InputError with the line of the file, or
 * with `position` if the file can't be read. Messages contain no secrets.
 */
export function readKeyFile(path: string, position: Position): KeyConfig[] {
  return scanKeys(readText(path, position), path)
}

function readText(path: string, position: Position): string {
  const fault = (reason: string, cause?: unknown): InputError =>
    new InputError(position, `can't read keys from ${path}: ${reason}`, cause)
  let octets: Buffer | undefined
  try {
    // O_NONBLOCK: opening a pipe would wait for its writer, and the server with it.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      if (!fstatSync(descriptor).isFile()) throw fault('it is not a regular file')
      octets = readAtMost(descriptor, FILE_OCTETS_MAX)
    } finally {
      closeSync(descriptor)
    }
  } catch (error) {
    if (error instanceof InputError) throw error
    throw fault(error instanceof Error ? error.message : String(error), error)
  }
  if (octets === undefined) throw fault('it is larger than 1 MiB')
  return octets.toString('utf8')
}

/** As `readKeyFile`, for text that is already read. */
function scanKeys(text: string, file: string): KeyConfig[] {
  const tokens = tokenize(text)
  const keys: KeyConfig[] = []
  const seen = new Set<string>()
  let at = 0
  const fault = (message: string): InputError => {
    const line = tokens[Math.min(at, tokens.length) - 1]?.line ?? 1
    return new InputError({ file, line }, message)
  }
  const next = (what: string): string => {
    const token = tokens[at++]
    if (token === undefined) throw fault(`${what} is missing at the end of the file`)
    return token.text
  }
  const expect = (text: string): void => {
    if (next(text) !== text) throw fault(`'${text}' is missing`)
  }
  while (at < tokens.length) {
    if (next('key') !== 'key') throw fault('a key begins with `key NAME {`')
    const name = scanName(next('the name of the key'))
    if (name === undefined) throw fault('the name of the key is not a domain name')
    expect('{')
    let algorithm: TsigAlgorithm = HMAC_SHA256
    let secret: Uint8Array | undefined
    for (let word = next('}'); word !== '}'; word = next('}')) {
      if (word === 'algorithm') algorithm = scanAlgorithmOf(next('the algorithm'), fault)
      else if (word === 'secret') secret = scanSecret(next('the secret'), fault)
      else throw fault('a key has `algorithm` and `secret`, each ended by a semicolon')
      expect(';')
    }
    expect(';')
    if (secret === undefined) throw fault('the key has no secret')
    const key = Buffer.from(name).toString('latin1').toLowerCase()
    if (seen.has(key)) throw fault('the key appears twice')
    seen.add(key)
    keys.push({ name, algorithm: algorithm.text, secret })
  }
  return keys
}

function scanAlgorithmOf(text: string, fault: (message: string) => InputError): TsigAlgorithm {
  const algorithm = scanAlgorithm(text)
  if (algorithm === undefined) throw fault(`the algorithm must be one of ${ALGORITHM_NAMES}`)
  return algorithm
}

function scanSecret(text: string, fault: (message: string) => InputError): Uint8Array {
  const secret = scanBase64(text)
  if (secret === undefined || secret.length === 0) throw fault('the secret is not base64')
  return secret
}

/** Words, quoted words and `{`, `}`, `;`, without comments of all three kinds. */
function tokenize(text: string): Token[] {
  const tokens: Token[] = []
  const pattern = /\s+|#.*|\/\/.*|\/\*[\s\S]*?(?:\*\/|$)|"([^"\n]*)"?|[{};]|[^\s{};"]+/g
  let line = 1
  for (const match of text.matchAll(pattern)) {
    const [whole, quoted] = match
    const isBlank = /^(?:\s|#|\/\/|\/\*)/.test(whole)
    if (!isBlank) tokens.push({ text: quoted ?? whole, line })
    line += whole.split('\n').length - 1
  }
  return tokens
}
