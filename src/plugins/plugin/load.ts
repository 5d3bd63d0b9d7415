import { readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { InputError, type Position } from '../../base/errors.ts'
import { reasonOf } from '../../base/system-error.ts'
import { Dispenser } from '../../corefile/dispenser.ts'
import type { ServerBlock } from '../../corefile/parser.ts'
import type { Description, DirectivePart } from '../../plugin/description.ts'
import type { Directive } from '../../plugin/directive.ts'
import { API_VERSION, PLUGIN_API, type Plugin, type PluginDirective } from './api.ts'
import { type DeclaredDirective, scanDeclared } from './declared.ts'

/** Conditions of `exports` in package.json that apply to Sextant. */
const CONDITIONS: ReadonlySet<string> = new Set(['node', 'import', 'default'])

/** Longest time to load the module of a package: a reload and a stop wait for it. */
const IMPORT_MS_MAX = 30_000

/**
 * Loads the directives that blocks declare. One that cannot be loaded has a setup that throws the reason, with
 * the place of the declaration. `corefile`: path of the Corefile; '' = it has none.
 */
export async function loadDeclared(
  blocks: readonly ServerBlock[],
  corefile: string,
  importMsMax: number = IMPORT_MS_MAX,
): Promise<readonly Directive[]> {
  const declared = new Map<string, DeclaredDirective & { readonly position: Position }>()
  for (const { directives } of blocks) {
    const d = new Dispenser(directives.get('plugin') ?? [])
    try {
      while (d.next()) {
        const one = { position: d.position(), ...scanDeclared(d) }
        if (!declared.has(one.name)) declared.set(one.name, one)
      }
    } catch (error) {
      // The setup of `plugin` throws the same.
      if (!(error instanceof InputError)) throw error
    }
  }
  const folder = dirname(resolve(corefile === '' ? 'Corefile' : corefile))
  return Promise.all([...declared.values()].map((one) => load(one, folder, importMsMax)))
}

async function load(
  { name, source, place, position }: DeclaredDirective & { readonly position: Position },
  folder: string,
  importMsMax: number,
): Promise<Directive> {
  const fault = (message: string, cause?: unknown): InputError => {
    return new InputError(position, `npm package ${source} ${message}`, cause)
  }
  try {
    const plugin = await importPlugin(findModule(source, folder, fault), importMsMax, fault)
    const directive = attempt(() => plugin(PLUGIN_API, name), 'its default export', fault)
    if (typeof directive?.setup !== 'function') {
      throw fault(
        'is not a plug-in: its default export must return an object with a function setup',
      )
    }
    return { name, place, setup: (c) => setUp(directive, c, fault) }
  } catch (error) {
    return {
      name,
      place,
      setup: () => {
        throw error
      },
    }
  }
}

type Fault = (message: string, cause?: unknown) => InputError

function setUp(
  directive: PluginDirective,
  c: Parameters<Directive['setup']>[0],
  fault: Fault,
): Description {
  const description: unknown = attempt(() => directive.setup(c), 'its setup', fault)
  const parts = Array.isArray(description) ? description : [description]
  if (parts.every(isPart)) return parts
  throw fault(
    'is not a plug-in: its setup must return an object or a list of objects, not a promise; a handler is a function',
  )
}

function isPart(part: unknown): part is DirectivePart {
  if (typeof part !== 'object' || part === null || 'then' in part) return false
  return !('handler' in part) || ['function', 'undefined'].includes(typeof part.handler)
}

/** Runs code of a plug-in. Errors other than InputError, which has a place, become faults of the package. */
function attempt<Result>(run: () => Result, what: string, fault: Fault): Result {
  try {
    return run()
  } catch (error) {
    if (error instanceof InputError) throw error
    throw fault(`failed: ${what} threw ${reasonOf(error)}`, error)
  }
}

/** Returns the path of the module of a package that is installed. */
function findModule(source: string, folder: string, fault: Fault): string {
  const home = [folder, dirname(fileURLToPath(import.meta.url))]
    .flatMap(foldersAbove)
    .map((above) => join(above, 'node_modules', source))
    .find(isPackage)
  if (home === undefined) {
    throw fault(`is not installed: run npm install ${source} in ${folder}`)
  }
  return findEntry(home, fault)
}

async function importPlugin(entry: string, msMax: number, fault: Fault): Promise<Plugin> {
  const end = new AbortController()
  const late = setTimeout(msMax, undefined, { signal: end.signal }).then(() => {
    throw new Error(`its module did not load within ${msMax / 1000} s`)
  })
  let loaded: { readonly default?: unknown }
  try {
    loaded = await Promise.race([import(pathToFileURL(entry).href), late])
  } catch (error) {
    // Node.js returns the same error for each later import.
    throw fault(`cannot be loaded: ${reasonOf(error)}; restart Sextant after you correct it`, error)
  } finally {
    late.catch(() => {})
    end.abort()
  }
  if (typeof loaded.default !== 'function') {
    throw fault(`is not a plug-in: the default export of ${entry} must be a function`)
  }
  return loaded.default as Plugin
}

/** A folder and those that it is in, from the inside. */
function foldersAbove(folder: string): string[] {
  const parent = dirname(folder)
  return parent === folder ? [folder] : [folder, ...foldersAbove(parent)]
}

function isPackage(home: string): boolean {
  return readText(join(home, 'package.json')) !== undefined
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Returns the path of the module of a package. Throws if the package is not for this version of plug-ins. */
function findEntry(home: string, fault: Fault): string {
  const about = parse(readText(join(home, 'package.json')) ?? '')
  if (about === undefined) throw fault(`has an invalid package.json in ${home}`)
  const stated = fieldOf(about.sextant, 'apiVersion')
  if (stated === undefined) {
    throw fault(
      `is not a plug-in: its package.json has no "sextant": { "apiVersion": ${API_VERSION} }`,
    )
  }
  if (stated !== API_VERSION) {
    const own = `this Sextant has version ${API_VERSION}`
    throw fault(`is for version ${JSON.stringify(stated)} of the plug-in API, and ${own}`)
  }
  const { main = 'index.js', exports = main } = about
  const target = findTarget(exports)
  const entry = target === undefined ? undefined : readPath(join(home, target))
  if (entry === undefined || !entry.startsWith(`${readPath(home)}${sep}`)) {
    throw fault(
      'has no module: "exports" or "main" of its package.json must name a file in its folder',
    )
  }
  return entry
}

function parse(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return new Map(Object.entries(value ?? {})).get(name)
}

/** Returns the path that `exports` has for the package itself. */
function findTarget(exports: unknown): string | undefined {
  if (typeof exports === 'string') return exports
  if (typeof exports !== 'object' || exports === null) return undefined
  const own = fieldOf(exports, '.')
  if (own !== undefined) return findTarget(own)
  for (const [condition, target] of Object.entries(exports)) {
    const found = CONDITIONS.has(condition) ? findTarget(target) : undefined
    if (found !== undefined) return found
  }
  return undefined
}

function readPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
