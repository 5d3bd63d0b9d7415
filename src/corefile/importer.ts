import { closeSync, constants, fstatSync, openSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { readAtMost } from '../base/read.ts'
import { glob } from './glob.ts'
import { scanTokens } from './lexer.ts'
import { startsLine, type Token } from './token.ts'
import type { TokenSource } from './token-source.ts'

/** Most imports of snippets, and of files, in one Corefile: CoreDNS's limit. */
const SNIPPET_IMPORTS_MAX = 10_000
const FILE_IMPORTS_MAX = 100_000
/** Most tokens that all imports add: a snippet that imports others multiplies them. */
const IMPORTED_TOKENS_MAX = 2_000_000
/**
 * Most octets of a Corefile, and of each file that it imports: enough for some ten thousands of
 * server blocks.
 */
export const FILE_OCTETS_MAX = 16 * 1024 * 1024

/** Resolves `import` against snippets and files, and puts their tokens into the token source. */
export class Importer {
  readonly #source: TokenSource
  readonly #substitute: (text: string) => string
  readonly #warn: (message: string) => void
  readonly #snippets = new Map<string, readonly Token[]>()
  /** By file: the files that it imports. */
  readonly #imports = new Map<string, Set<string>>()
  #snippetImports = 0
  #fileImports = 0
  #importedTokens = 0

  constructor(
    source: TokenSource,
    substitute: (text: string) => string,
    warn: (message: string) => void = () => {},
  ) {
    this.#source = source
    this.#substitute = substitute
    this.#warn = warn
  }

  /** Defines snippet `name`. `readTokens` reads its body from the source. */
  define(name: string, readTokens: () => readonly Token[]): void {
    const source = this.#source
    if (this.#snippets.has(name)) {
      throw source.error(`redeclaration of previously declared snippet ${name}`)
    }
    const tokens = readTokens()
    if (this.#importsItself(name, tokens)) throw this.#snippetDepthError()
    this.#snippets.set(name, tokens)
  }

  #importsItself(name: string, tokens: readonly Token[]): boolean {
    return tokens.some((token, i) => {
      const previous = tokens[i - 1]
      const pattern = tokens[i + 1]
      if (token.text !== 'import' || pattern === undefined) return false
      const atLineStart = previous === undefined || startsLine(previous, token)
      return atLineStart && this.#substitute(pattern.text) === name
    })
  }

  /**
   * Replaces the current `import` and its argument by the imported tokens, and moves to the first
   * of them.
   */
  import(): void {
    const source = this.#source
    if (!source.nextArg()) {
      throw source.error(`Wrong argument count or unexpected line ending after '${source.value()}'`)
    }
    const pattern = this.#substitute(source.value())
    if (pattern === '') throw source.error('Import requires a non-empty filepath')
    if (source.nextArg()) {
      throw source.error('Import takes only one argument (glob pattern or file)')
    }
    const tokens = this.#snippetTokens(pattern) ?? this.#fileTokens(pattern)
    this.#importedTokens += tokens.length
    if (this.#importedTokens > IMPORTED_TOKENS_MAX) {
      throw source.error(`imports have more than ${IMPORTED_TOKENS_MAX} tokens`)
    }
    source.replacePair(tokens)
  }

  #snippetTokens(name: string): readonly Token[] | undefined {
    const tokens = this.#snippets.get(name)
    if (tokens === undefined) return undefined
    if (this.#snippetImports >= SNIPPET_IMPORTS_MAX) throw this.#snippetDepthError()
    this.#snippetImports++
    return tokens
  }

  #snippetDepthError() {
    return this.#source.error(`maximum snippet import depth (${SNIPPET_IMPORTS_MAX}) exceeded`)
  }

  #fileTokens(pattern: string): readonly Token[] {
    const source = this.#source
    if (this.#fileImports >= FILE_IMPORTS_MAX) {
      throw source.error(`maximum file import depth (${FILE_IMPORTS_MAX}) exceeded`)
    }
    this.#fileImports++
    const importer = resolve(source.position().file)
    const path = resolve(dirname(importer), pattern)
    const wildcards = (c: string): number => path.split(c).length - 1
    if (wildcards('*') > 1 || wildcards('?') > 1 || (path.includes('[') && path.includes(']'))) {
      const message = 'Glob pattern may only contain one wildcard (*), but has others'
      throw source.error(`${message}: ${path}`)
    }
    const files = glob(path)
    for (const file of files) this.#noteImport(importer, file)
    if (files.length > 0) return files.flatMap((file) => this.#readFile(file))
    if (!/[*?[\]]/.test(path)) throw source.error(`File to import not found: ${pattern}`)
    this.#warn(`No files matching import glob pattern: ${pattern}`)
    return []
  }

  /** Throws if `file` imports its importer again: the imports would never end. */
  #noteImport(importer: string, file: string): void {
    const known = this.#imports.get(importer) ?? new Set()
    if (known.has(file)) return
    this.#imports.set(importer, known.add(file))
    if (!this.#leadsTo(file, importer)) return
    const what = file === importer ? 'itself' : `${file}, which imports it again`
    throw this.#source.error(`${importer} imports ${what}; remove one of the imports`)
  }

  /** Whether `file` is `target` or imports it, directly or through other files. */
  #leadsTo(file: string, target: string): boolean {
    const seen = new Set([file])
    for (const one of seen) {
      if (one === target) return true
      for (const next of this.#imports.get(one) ?? []) seen.add(next)
    }
    return false
  }

  #readFile(file: string): Token[] {
    const fault = (reason: string) => this.#source.error(`Could not import ${file}: ${reason}`)
    let descriptor: number
    try {
      // O_NONBLOCK: opening a pipe would wait for its writer and block the server.
      descriptor = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    } catch (error) {
      throw fault(error instanceof Error ? error.message : String(error))
    }
    try {
      const stat = fstatSync(descriptor)
      if (stat.isDirectory()) throw fault('is a directory')
      if (!stat.isFile()) throw fault('is not a regular file')
      const text = readAtMost(descriptor, FILE_OCTETS_MAX)
      if (text === undefined) throw fault(`is larger than ${FILE_OCTETS_MAX} octets`)
      return scanTokens(text.toString('utf8'), file)
    } finally {
      closeSync(descriptor)
    }
  }
}
