// Builds dist with the web console, and writes there the declarations (.d.ts) of what package.json exports, and of all that these refer to.
// Arguments are those of tsc. No script of npm that runs after another one: many users switch those off (ignore-scripts).
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { buildConsole } from './console.mjs'

/** Written last, so that it is newer than the build. */
const DONE = 'dist/types.tsbuildinfo'
const BUILD = 'dist/build.tsbuildinfo'

const compiler = ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.build.json']
const { status } = spawnSync(process.execPath, [...compiler, ...process.argv.slice(2)], {
  stdio: 'inherit',
})
if (status !== 0) process.exit(status ?? 1)
if (!(await buildConsole())) process.exit(1)

if (!existsSync(DONE) || statSync(DONE).mtimeMs <= statSync(BUILD).mtimeMs) {
  const { default: ts } = await import('typescript')
  const { exports } = JSON.parse(readFileSync('package.json', 'utf8'))
  const entries = Object.values(exports).flatMap(({ types }) => types ?? [])
  const left = entries.map((path) => path.replace(/^\.\/dist(.*)\.d\.ts$/, 'src$1.ts'))
  const compilerOptions = {
    ...ts.convertCompilerOptionsFromJson(
      JSON.parse(readFileSync('tsconfig.json', 'utf8')).compilerOptions,
      '.',
    ).options,
    declaration: true,
    noEmit: false,
  }
  const written = new Set()
  for (let source = left.pop(); source !== undefined; source = left.pop()) {
    if (written.has(source)) continue
    written.add(source)
    const { outputText, diagnostics } = ts.transpileDeclaration(readFileSync(source, 'utf8'), {
      compilerOptions,
      fileName: source,
      reportDiagnostics: true,
    })
    for (const { file, start, messageText } of diagnostics) {
      const { line } = file.getLineAndCharacterOfPosition(start)
      console.error(`${source}:${line + 1}: ${messageText}`)
      process.exitCode = 1
    }
    const path = source.replace(/^src(.*)\.ts$/, 'dist$1.d.ts')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, outputText)
    for (const { fileName } of ts.preProcessFile(outputText).importedFiles) {
      if (fileName.startsWith('.')) left.push(join(dirname(source), fileName))
    }
  }
  writeFileSync(DONE, '')
}
