import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..')
const FILE_LINES_MAX = 500
const FUNCTION_LINES_MAX = 70
const FOLDER_README_LINES_MAX = 15
const PICTURE_OCTETS_MAX = 8192

function filesUnder(folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort()
}

/** Also those of the console, which are in a form of TypeScript with HTML. */
function sourcesUnder(folder: string): string[] {
  return [...filesUnder(folder, '.ts'), ...filesUnder(folder, '.tsx')]
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8')
}

function importsOf(file: string): string[] {
  const found = read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map((match) => relative(root, resolve(root, dirname(file), match[1] ?? '')))
}

/** Without those that run later: `import(…)`. */
function staticImportsOf(file: string): string[] {
  const found = read(file).matchAll(/^(?:import|export)\b[^'()]*'(\.[^']+)'/gm)
  return [...found].map((match) => relative(root, resolve(root, dirname(file), match[1] ?? '')))
}

function topFolder(file: string): string {
  return file.split('/')[1] ?? ''
}

/** What `src/FOLDER/README.md` allows the folder to import. */
function scanImports(readme: string): string[] {
  const [, list = ''] = /^- May import: ([^.]*)\./m.exec(readme) ?? []
  return [...list.matchAll(/`([\w-]+)`/g)].map(([, folder = '']) => folder)
}

const FOLDERS: readonly string[] = readdirSync(join(root, 'src'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)

/** By folder of src: the folders that it may import. */
const ALLOWED: ReadonlyMap<string, readonly string[]> = new Map([
  ...FOLDERS.map((name) => [name, scanImports(read(`src/${name}/README.md`))] as const),
  ['main.ts', ['cli']],
])

/** Why `from` must not import `to`; '' if it may. */
function breach(from: string, to: string): string {
  const [importer, imported] = [topFolder(from), topFolder(to)]
  if (importer === 'plugins' && imported === 'plugins') {
    const inOrder = from === 'src/plugins/order.ts'
    const sameDirective = from.split('/')[2] === to.split('/')[2]
    return inOrder || sameDirective ? '' : 'imports another directive'
  }
  if (importer === imported) return ''
  if (to === 'src/plugins/order.ts' && importer !== 'cli') return 'only cli knows the directives'
  if (importer === 'operator' && to.startsWith('src/egress/agent/'))
    return 'the operator runs on no node'
  return ALLOWED.get(importer)?.includes(imported)
    ? ''
    : `src/${importer}/README.md does not allow it`
}

t.test('the check of imports itself tells breaches from legal imports', async (t) => {
  const table = [
    { from: 'src/dns/a.ts', to: 'src/base/b.ts', ok: true },
    { from: 'src/base/b.ts', to: 'src/dns/a.ts', ok: false },
    { from: 'src/plugins/x/x.ts', to: 'src/plugins/y/y.ts', ok: false },
    { from: 'src/plugins/x/x.ts', to: 'src/plugins/x/setup.ts', ok: true },
    { from: 'src/plugins/order.ts', to: 'src/plugins/x/setup.ts', ok: true },
    { from: 'src/server/instance.ts', to: 'src/plugins/order.ts', ok: false },
    { from: 'src/transport/udp.ts', to: 'src/plugin/handler.ts', ok: false },
    { from: 'src/operator/a.ts', to: 'src/plugin/handler.ts', ok: false },
    { from: 'src/operator/a.ts', to: 'src/kube/objects.ts', ok: true },
    { from: 'src/operator/a.ts', to: 'src/egress/agent/client.ts', ok: false },
    { from: 'src/plugin/a.ts', to: 'src/geo/locator.ts', ok: false },
    { from: 'src/elsewhere/a.ts', to: 'src/base/b.ts', ok: false },
  ]
  for (const { from, to, ok } of table) t.equal(breach(from, to) === '', ok, `${from} -> ${to}`)
  t.strictSame(scanImports('- May import: `a`,\n  `b-c`.\n- Begin with: `d`.'), ['a', 'b-c'])
})

t.test('folders import what their README.md allows, and all of it', async (t) => {
  const imports = sourcesUnder('src').flatMap((from) =>
    importsOf(from).map((to) => ({ from, to, why: breach(from, to) })),
  )
  t.strictSame(
    imports.filter(({ why }) => why !== ''),
    [],
  )
  const used = new Set(imports.map(({ from, to }) => `${topFolder(from)} ${topFolder(to)}`))
  const unused = [...ALLOWED].flatMap(([from, folders]) =>
    folders.map((to) => `${from} ${to}`).filter((pair) => !used.has(pair)),
  )
  t.strictSame(unused, [])
})

/** What `src/FOLDER/README.md` says of the folders inside: each imports only those that follow it. */
function scanLayers(readme: string): string[] {
  const [, list = ''] = /^- Layers: ([^.]*)\./m.exec(readme) ?? []
  return [...list.matchAll(/`([\w-]+)`/g)].map(([, folder = '']) => folder)
}

/** True if the folder of `from` precedes the one of `to` in `layers`, or the list lacks one of them. */
function isDownward(layers: readonly string[], from: string, to: string): boolean {
  if (topFolder(from) !== topFolder(to)) return true
  const [upper, lower] = [from, to].map((file) => layers.indexOf(file.split('/')[2] ?? ''))
  return upper === -1 || lower === -1 || upper! <= lower!
}

t.test('the folders of a folder import as the layers in its README.md say', async (t) => {
  const layers = scanLayers('- Layers: `a`, `b-c`. A folder …')
  t.strictSame(layers, ['a', 'b-c'])
  for (const [from, to, ok] of [
    ['src/x/a/1.ts', 'src/x/b-c/2.ts', true],
    ['src/x/b-c/2.ts', 'src/x/b-c/d/3.ts', true],
    ['src/x/b-c/2.ts', 'src/x/a/1.ts', false],
    ['src/x/b-c/2.ts', 'src/x/e/1.ts', true],
    ['src/x/b-c/2.ts', 'src/y/a/1.ts', true],
    ['src/x/b-c/2.ts', 'src/x/1.ts', true],
  ] as const) {
    t.equal(isDownward(layers, from, to), ok, `${from} -> ${to}`)
  }
  for (const name of FOLDERS) {
    const layers = scanLayers(read(`src/${name}/README.md`))
    for (const layer of layers) t.ok(existsSync(join(root, 'src', name, layer)), `${name}/${layer}`)
    const breaches = sourcesUnder(`src/${name}`).flatMap((from) =>
      importsOf(from).flatMap((to) => (isDownward(layers, from, to) ? [] : [`${from} -> ${to}`])),
    )
    t.strictSame(breaches, [])
  }
})

t.test('no folders import each other', async (t) => {
  t.strictSame(circlesOf(ALLOWED), [])
})

/** Files that a README.md of a folder of src names, relative to it or to the root, and that do not exist. */
function findLostFiles(folder: string, readme: string): string[] {
  return [...readme.matchAll(/`([\w./-]*\/[\w./-]*|[\w-]+\.\w+)`/g)]
    .map(([, path = '']) => path)
    .filter((path) => !existsSync(join(root, folder, path)) && !existsSync(join(root, path)))
}

t.test('every folder of src has a short README.md, whose files exist', async (t) => {
  t.strictSame(findLostFiles('src/dns', '`name/` `src/dns` `name/none.ts` `src/x` `x` `x.ts`'), [
    'name/none.ts',
    'src/x',
    'x.ts',
  ])
  for (const name of FOLDERS) {
    const readme = read(`src/${name}/README.md`)
    t.match(
      readme,
      /^# [\s\S]*\n- May import: [\s\S]*\n- Begin with: [\s\S]*\n- Change here when: /,
      name,
    )
    t.ok(readme.trimEnd().split('\n').length <= FOLDER_README_LINES_MAX, name)
    t.strictSame(findLostFiles(`src/${name}`, readme), [], name)
  }
})

t.test('docs/architecture.md lists the folders of src', async (t) => {
  const [, table = ''] = /^## Folders\n([\s\S]*?)\n## /m.exec(read('docs/architecture.md')) ?? []
  const rows = [...table.matchAll(/^\| .* \|$/gm)].join('\n')
  const listed = [...rows.matchAll(/`([\w-]+)`/g)].map(([, name = '']) => name)
  t.strictSame(listed.toSorted(), FOLDERS.toSorted())
})

t.test(`files stay within ${FILE_LINES_MAX} lines`, async (t) => {
  const files = ['src', 'test', 'bench'].flatMap((folder) => {
    return ['.ts', '.tsx', '.mjs'].flatMap((ending) => filesUnder(folder, ending))
  })
  const long = files
    .map((file) => ({ file, lines: read(file).split('\n').length }))
    .filter(({ lines }) => lines > FILE_LINES_MAX)
  t.strictSame(long, [])
})

/** Files that import each other, directly or through others; `graph`: what each file imports. */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const left = new Map([...graph].map(([file, imported]) => [file, new Set(imported)]))
  // A file that imports none of those left is in no circle.
  for (let before = -1; left.size !== before; ) {
    before = left.size
    for (const [file, imported] of left) {
      if (![...imported].some((one) => left.has(one))) left.delete(file)
    }
  }
  return [...left].map(([file, imported]) => [
    file,
    ...[...imported].filter((one) => left.has(one)),
  ])
}

t.test('no files import each other', async (t) => {
  const toy = { a: ['b'], b: ['c'], c: ['b', 'd'], d: [] }
  t.strictSame(circlesOf(new Map(Object.entries(toy))), [
    ['a', 'b'],
    ['b', 'c'],
    ['c', 'b'],
  ])
  const files = sourcesUnder('src')
  t.strictSame(circlesOf(new Map(files.map((file) => [file, staticImportsOf(file)]))), [])
})

/** `file name` of each declaration that src exports, and whose name no other file has. */
function findUnusedExports(texts: ReadonlyMap<string, string>): string[] {
  const files = new Map<string, number>()
  for (const text of texts.values()) {
    for (const word of new Set(text.match(/\w+/g))) files.set(word, (files.get(word) ?? 0) + 1)
  }
  const declaration =
    /^export (?:async |abstract )?(?:function\*?|class|interface|type|const) (\w+)/gm
  return [...texts]
    .filter(([file]) => file.startsWith('src/'))
    .flatMap(([file, text]) => [...text.matchAll(declaration)].map(([, name = '']) => [file, name]))
    .filter(([, name = '']) => files.get(name) === 1)
    .map((found) => found.join(' '))
}

t.test('an exported name is used by another file', async (t) => {
  const [a, b] = ['export function* f() {}\nexport const g = f', 'g()']
  t.strictSame(findUnusedExports(new Map(Object.entries({ 'src/a.ts': a, b }))), ['src/a.ts f'])
  const files = ['src', 'test', 'bench', 'docs'].flatMap((folder) => {
    return ['.ts', '.tsx', '.mjs'].flatMap((ending) => filesUnder(folder, ending))
  })
  t.strictSame(findUnusedExports(new Map(files.map((file) => [file, read(file)]))), [])
})

/** `file:line: N lines` of every function in `text` that is longer than allowed. */
function longFunctions(file: string, text: string): string[] {
  const kind = file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true, kind)
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node)) {
      const first = lineAt(node.getStart())
      const lines = lineAt(node.end) - first + 1
      if (lines > FUNCTION_LINES_MAX) found.push(`${file}:${first + 1}: ${lines} lines`)
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

t.test(`functions stay within ${FUNCTION_LINES_MAX} lines`, async (t) => {
  const long = `const f = () => {${'\n'.repeat(FUNCTION_LINES_MAX)}}`
  t.strictSame(longFunctions('a.ts', long), [`a.ts:1: ${FUNCTION_LINES_MAX + 1} lines`])
  t.strictSame(
    sourcesUnder('src').flatMap((file) => longFunctions(file, read(file))),
    [],
  )
})

t.test('every directive folder has a README and a setup', async (t) => {
  const folders = readdirSync(join(root, 'src/plugins'), { withFileTypes: true }).filter((entry) =>
    entry.isDirectory(),
  )
  for (const { name } of folders) {
    const files = readdirSync(join(root, 'src/plugins', name))
    t.ok(files.includes('README.md'), `${name} has a README.md`)
    t.ok(files.includes('setup.ts'), `${name} has a setup.ts`)
  }
})

t.test('test/support/README.md has a line for each file', async (t) => {
  const page = read('test/support/README.md')
  const files = readdirSync(join(root, 'test/support')).filter((file) => file !== 'README.md')
  t.strictSame(
    files.filter((file) => !page.includes(`\`${file}\``)),
    [],
  )
})

t.test('the lock file names no download address', async (t) => {
  t.notMatch(read('package-lock.json'), '"resolved":')
})

t.test('the lock file is whole, also for platforms that are not this one', async (t) => {
  type Package = { readonly optionalDependencies?: Readonly<Record<string, string>> }
  const lock: unknown = JSON.parse(read('package-lock.json'))
  const { packages } = lock as { readonly packages: Readonly<Record<string, Package>> }
  // npm leaves out what its registry lacks, and then npm ci refuses the file.
  const missing = Object.values(packages)
    .flatMap((entry) => Object.keys(entry.optionalDependencies ?? {}))
    .filter((name) => packages[`node_modules/${name}`] === undefined)
  t.strictSame(missing, [])
})

t.test('the top level holds nothing unexpected', async (t) => {
  const expected = new Set(
    `package.json package-lock.json tsconfig.json tsconfig.build.json biome.json src zones crds
     Corefile.example test bench docs deploy dist node_modules README.md CHANGELOG.md CONTRIBUTING.md
     LICENSE`.split(/\s+/),
  )
  const found = readdirSync(root).filter((name) => !name.startsWith('.') && !expected.has(name))
  t.strictSame(found, [])
})

/** Links of a page that lead to no file, or to no heading of one. Links in code blocks are examples. */
function deadLinks(file: string): string[] {
  const text = read(file)
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/`[^`\n]*`/g, '')
  const dead: string[] = []
  for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [path = '', heading = ''] = target.split('#')
    const page = path === '' ? file : join(dirname(file), path)
    if (!existsSync(join(root, page))) dead.push(`${file}: ${target}`)
    else if (heading !== '' && !headingsOf(page).has(heading)) dead.push(`${file}: ${target}`)
  }
  return dead
}

/** Anchors as GitHub makes them. */
function headingsOf(page: string): ReadonlySet<string> {
  const headings = read(page)
    .replace(/^```[\s\S]*?^```/gm, '')
    .matchAll(/^#+ +(.*)$/gm)
  return new Set(
    [...headings].map(([, text = '']) =>
      text
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )
}

t.test('links of pages lead somewhere', async (t) => {
  const pages = ['', 'docs', 'src', 'bench', 'deploy', 'test'].flatMap((folder) =>
    folder === ''
      ? readdirSync(root).filter((name) => name.endsWith('.md'))
      : filesUnder(folder, '.md').filter((file) => !file.includes('node_modules')),
  )
  t.ok(pages.length > 40)
  t.strictSame(pages.flatMap(deadLinks), [])
})

/**
 * Paths of the source tree that a page names although no such file or folder exists. Decision records keep the names
 * that files had when the decision was made.
 */
function lostPaths(file: string, text: string): string[] {
  const paths = text.matchAll(/(?<![\w/.@-])(?:src|test|bench)\/(?:[\w./-]*\w)?/g)
  return [...paths]
    .filter(([path]) => !existsSync(join(root, path)))
    .map(([path]) => `${file}: ${path}`)
}

t.test('source paths in pages exist', async (t) => {
  const pages = filesUnder('docs', '.md').filter((file) => !file.startsWith('docs/adr/'))
  t.strictSame(lostPaths('a.md', 'in `src/main.ts`, `src/zone/` and src/none.ts.'), [
    'a.md: src/none.ts',
  ])
  t.strictSame(
    pages.flatMap((file) => lostPaths(file, read(file))),
    [],
  )
})

t.test('pictures are small SVG files without scripts, each shown by a page', async (t) => {
  const shown = ['README.md', ...filesUnder('docs', '.md')].map(read).join('\n')
  const pictures = filesUnder('docs', '.svg')
  t.ok(pictures.length > 0)
  for (const file of pictures) {
    const text = read(file)
    t.ok(text.length <= PICTURE_OCTETS_MAX, `${file} has ${text.length} octets`)
    t.notMatch(text, /<script|<image|<foreignObject|\son\w+=|href=/, file)
    t.match(
      shown,
      new RegExp(`!\\[[^\\]]{20,}\\]\\([^)]*${file.split('/').at(-1)}\\)`),
      `${file} has alt text`,
    )
  }
})

/** Words of the old vocabulary. Quotations of code, and indented formats in docstrings, are exempt. */
const WORDS =
  /\b(told|tells|tellers?|untold|whoever|somebody|nobody|everybody|but for|save for|to be had|comes? to rest|requery|plain lane|is no good)\b/i

function wordsIn(file: string, text: string): string[] {
  return text
    .replace(/`[^`\n]*`/g, '')
    .replace(/^ *\* {5,}.*$/gm, '')
    .split('\n')
    .flatMap((line, i) => {
      const word = WORDS.exec(line)
      return word === null ? [] : [`${file}:${i + 1}: ${word[0]}`]
    })
}

/** Titles of tests, and names of the cases of a table. */
function titlesOf(text: string): string {
  const titles = text.matchAll(/(?:\btest\(|\bname:)\s*(['"`])(.*?)\1[,)]/g)
  return [...titles].map(([, , title = '']) => title).join('\n')
}

/** `text` with everything but its comments blanked, lines kept. */
function commentsOf(text: string): string {
  const blank = (code: string): string => code.replace(/[^\n]/g, '')
  let end = 0
  let out = ''
  for (const { 0: comment, index } of text.matchAll(/^\s*\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm)) {
    out += blank(text.slice(end, index)) + comment
    end = index + comment.length
  }
  return out
}

t.test('comments, pages and titles of tests use plain words', async (t) => {
  t.strictSame(wordsIn('a', 'one\nwhoever `nobody`'), ['a:2: whoever'])
  t.strictSame(wordsIn('a', commentsOf("const told = ''\n// was told\n")), ['a:2: told'])
  t.equal(titlesOf("t.test('a', async () => {\n  name: 'b',\n  t.test(\n    'c',\n"), 'a\nb\nc')
  const tests = filesUnder('test', '.ts').filter((file) => file !== 'test/tidy.test.ts')
  const pages = [...filesUnder('docs', '.md'), 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md']
  const found = [
    ...pages
      .filter((page) => !page.startsWith('docs/adr/'))
      .flatMap((page) => wordsIn(page, read(page).replace(/^```[\s\S]*?^```/gm, ''))),
    ...[...sourcesUnder('src'), ...tests].flatMap((file) => wordsIn(file, commentsOf(read(file)))),
    ...tests.flatMap((file) => wordsIn(`title in ${file}`, titlesOf(read(file)))),
  ]
  t.strictSame(found, [])
})

t.test('comments stay within 120 columns', async (t) => {
  const long = sourcesUnder('src').flatMap((file) =>
    commentsOf(read(file))
      .split('\n')
      .flatMap((line, i) => (line.length > 120 ? [`${file}:${i + 1}`] : [])),
  )
  t.strictSame(long, [])
})

t.test('every exported type has a name of its own', async (t) => {
  const places = new Map<string, string[]>()
  for (const file of sourcesUnder('src')) {
    for (const [, name = ''] of read(file).matchAll(
      /^export (?:abstract )?(?:class|interface|type) (\w+)/gm,
    )) {
      places.set(name, [...(places.get(name) ?? []), file])
    }
  }
  t.strictSame(
    [...places].filter(([, files]) => files.length > 1),
    [],
  )
})
