import { createHash, randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const require = createRequire(import.meta.url)
const root = fileURLToPath(new URL('../..', import.meta.url))
/** Transpiled files, each under its path, of all test processes: gone with tap's other files. */
const cache = join(root, '.tap/javascript')
const { version } = require('typescript/package.json')

/** Hook of Node's module loader: `.ts` files become JavaScript, all else goes on to the next hook. */
export async function load(url, context, nextLoad) {
  const { protocol, pathname } = new URL(url)
  if (protocol !== 'file:' || !pathname.endsWith('.ts')) return nextLoad(url, context)
  return { format: 'module', source: javascriptOf(fileURLToPath(url)), shortCircuit: true }
}

/** The cached JavaScript if it is of what the file holds; else it is made, and cached. */
function javascriptOf(path) {
  const source = readFileSync(path, 'utf8')
  const hash = createHash('sha1').update(`${version}\n${path}\n${source}`).digest('hex')
  const mark = `// ${hash}\n`
  const cached = join(cache, `${relative(root, path)}.js`)
  const text = readIfThere(cached)
  if (text.endsWith(mark)) return text
  const made = `${transpile(path, source)}\n${mark}`
  mkdirSync(dirname(cached), { recursive: true })
  // Processes and their threads write at the same time: each a file of its own, renamed when it is whole.
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

function transpile(fileName, source) {
  // Loaded when there is something to do: it takes longer to start than most tests.
  const { ModuleKind, ScriptTarget, transpileModule } = require('typescript')
  const compilerOptions = {
    target: ScriptTarget.ES2023,
    module: ModuleKind.ESNext,
    verbatimModuleSyntax: true,
    inlineSourceMap: true,
  }
  return transpileModule(source, { fileName, compilerOptions }).outputText
}
