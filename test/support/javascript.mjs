import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import module, { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const root = fileURLToPath(new URL('../..', import.meta.url))
/** Cache that all test processes share: one JavaScript file for each TypeScript file. */
const cache = join(root, '.tap/javascript')
const { version } = require('typescript/package.json')

/** Returns the JavaScript of the TypeScript file `path`: from the cache if the file has not changed since. */
export function javascriptOf(path) {
  const source = readFileSync(path, 'utf8')
  const name = relative(root, path)
  const hash = createHash('sha1').update(`${version}\n${name}\n${source}`).digest('hex')
  const mark = `// ${hash}\n`
  const cached = join(cache, `${name}.js`)
  const text = readIfThere(cached)
  if (text.endsWith(mark)) return text
  const made = `${transpile(path, source)}\n${mark}`
  mkdirSync(dirname(cached), { recursive: true })
  // Several processes and threads may write the same entry: the rename makes it whole at once.
  const own = `${cached}.${randomUUID()}`
  writeFileSync(own, made)
  renameSync(own, cached)
  return made
}

function readIfThere(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function stripTypes(source) {
  const { emitWarning } = process
  // That the function is experimental, in each process.
  process.emitWarning = () => {}
  try {
    return module.stripTypeScriptTypes(source)
  } finally {
    process.emitWarning = emitWarning
  }
}

function transpile(fileName, source) {
  // Since Node 22.13: takes a twentieth of the compiler's time, and needs no source map because all positions stay.
  if (module.stripTypeScriptTypes !== undefined) return stripTypes(source)
  // Loaded on demand: loading the compiler takes longer than most tests.
  const { ModuleKind, ScriptTarget, transpileModule } = require('typescript')
  const compilerOptions = {
    target: ScriptTarget.ES2023,
    module: ModuleKind.ESNext,
    verbatimModuleSyntax: true,
    inlineSourceMap: true,
  }
  return transpileModule(source, { fileName, compilerOptions }).outputText
}
