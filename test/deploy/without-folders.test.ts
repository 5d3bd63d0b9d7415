import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import ts from 'typescript'
import { ask } from '../support/dig.ts'
import { needs } from '../support/peer.ts'
import { root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

// Long: it type-checks much of the sources.

/** A feature that can be deleted: its folders under src, and its lines of lists. */
interface Feature {
  readonly name: string
  readonly folders: readonly string[]
  /** By list: what each of its lines contains. */
  readonly lines: Readonly<Record<string, string>>
  /** What names the feature; no other file under src may. */
  readonly words: RegExp
  /** Files that name it anyway, with the reason. */
  readonly mentions: Readonly<Record<string, string>>
}

const FEATURES: readonly Feature[] = [
  {
    name: 'xdp',
    folders: ['transport/udp/xdp', 'server/data/xdp', 'plugins/xdp'],
    lines: { 'server/data/bypasses.ts': './xdp/', 'plugins/order.ts': './xdp/' },
    words: /xdp/i,
    mentions: { 'plugins/order.ts': 'lists the names of directives that this version lacks, too' },
  },
  {
    name: 'the web console',
    folders: ['api/console'],
    lines: { 'api/admin/companions.ts': '../console/' },
    words: /\/console\/[a-z]/,
    mentions: {},
  },
]

const src = join(root, 'src')
const { options, fileNames } = ts.getParsedCommandLineOfConfigFile(
  join(root, 'tsconfig.build.json'),
  {},
  { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} },
)!
const parsed = new Map<string, ts.SourceFile | undefined>()

const isDeleted = (file: string, { folders }: Feature): boolean =>
  folders.some((folder) => file.startsWith(`${join(src, folder)}/`))

/** The lists without the lines of the feature, by path. */
function cutLists({ lines }: Feature): Map<string, string> {
  const cut = Object.entries(lines).map(([file, text]) => {
    const path = join(src, file)
    const all = readFileSync(path, 'utf8').split('\n')
    return [path, all.filter((line) => !line.includes(text)).join('\n')] as const
  })
  return new Map(cut)
}

/**
 * The sources without a feature, for the compiler. Other files are parsed once for all features. Only files
 * that import what was changed are checked: the types of all others are the same.
 */
function check(feature: Feature): string[] {
  const lists = cutLists(feature)
  const plain = ts.createCompilerHost(options)
  const host: ts.CompilerHost = {
    ...plain,
    fileExists: (file) => !isDeleted(file, feature) && plain.fileExists(file),
    getSourceFile: (file, target) => {
      const list = lists.get(file)
      if (list !== undefined) return ts.createSourceFile(file, list, target)
      if (!parsed.has(file)) parsed.set(file, plain.getSourceFile(file, target))
      return parsed.get(file)
    },
  }
  const kept = fileNames.filter((file) => !isDeleted(file, feature))
  const program = ts.createProgram(kept, options, host)
  const isConcerned = (file: string): boolean => lists.has(file) || isDeleted(file, feature)
  const checked = kept.filter((file) => {
    const { imports } =
      (parsed.get(file) as unknown as { imports?: readonly ts.StringLiteral[] }) ?? {}
    return lists.has(file) || imports?.some(({ text }) => isConcerned(join(file, '..', text)))
  })
  return checked.flatMap((file) =>
    program.getSemanticDiagnostics(program.getSourceFile(file)).map(({ start, messageText }) => {
      const line = program.getSourceFile(file)!.getLineAndCharacterOfPosition(start ?? 0).line + 1
      return `${file}:${line}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
    }),
  )
}

/** Copies the build without the feature; returns the path of its main.js. */
function build(t: Test, feature: Feature): string {
  const directory = temporaryDirectory(t)
  const dist = join(directory, 'dist')
  cpSync(join(root, 'dist'), dist, { recursive: true })
  cpSync(join(root, 'package.json'), join(directory, 'package.json'))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  for (const folder of feature.folders) rmSync(join(dist, folder), { recursive: true })
  for (const [file, text] of cutLists(feature)) {
    // `NodeNext` would read package.json to know the format.
    const compilerOptions = { ...options, module: ts.ModuleKind.ESNext }
    const { outputText } = ts.transpileModule(text, { compilerOptions })
    writeFileSync(join(dist, file.slice(src.length).replace(/\.ts$/, '.js')), outputText)
  }
  return join(dist, 'main.js')
}

for (const feature of FEATURES) {
  const { name, lines, words, mentions } = feature
  t.test(`${name} is named in its folders and in one line of each list`, async (t) => {
    const naming = fileNames.filter((file) => {
      return !isDeleted(file, feature) && words.test(readFileSync(file, 'utf8'))
    })
    const allowed = new Set([...Object.keys(lines), ...Object.keys(mentions)])
    t.strictSame(naming.map((file) => file.slice(src.length + 1)).sort(), [...allowed].sort())
    for (const [file, text] of cutLists(feature)) {
      const before = readFileSync(file, 'utf8').split('\n').length
      t.equal(before - text.split('\n').length, 1, file)
    }
  })

  t.test(`the sources type-check without ${name}`, async (t) => {
    t.strictSame(check(feature), [])
    t.not(check({ ...feature, lines: {} }).length, 0, 'a line that is left is found')
  })

  t.test(`a build without ${name} serves`, needs('dig'), async (t) => {
    const main = build(t, feature)
    const server = await startServer(t, {
      corefile: 'example.org:{PORT} {\n  bind 127.0.0.1\n  whoami\n}\n',
      env: { MAIN: main },
      wrapper: ['sh', '-c', 'exec "$0" "$MAIN" serve -conf Corefile'],
    })
    t.match(await ask('dig', server.port, ['example.org']), { status: 'NOERROR' })
    server.process.kill('SIGTERM')
    t.equal(await server.exited(), 0, server.output())
  })
}
