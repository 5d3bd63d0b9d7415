import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import t from 'tap'
import { cacheFolder } from '../support/cache-folder.ts'
import { run } from '../support/peer.ts'
import { root, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

// Long: it installs packages, and starts what was copied for each image.

interface Instruction {
  readonly name: string
  readonly args: readonly string[]
}

/** Instructions of each stage; ours has no continued lines. */
function scanStages(text: string): Instruction[][] {
  const stages: Instruction[][] = []
  for (const line of text.split('\n').filter((line) => /^[A-Z]/.test(line))) {
    const [name = '', ...args] = line.split(/\s+/)
    if (name === 'FROM') stages.push([])
    stages.at(-1)?.push({ name, args })
  }
  return stages
}

const text = readFileSync(join(root, 'deploy/Dockerfile'), 'utf8')
const stages = scanStages(text)
/** `node`: the image of the node agent. `image`: the one that is built without --target. */
const [build = [], node = [], image = []] = stages
const copies = (stage: readonly Instruction[]) =>
  stage.filter(({ name }) => name === 'COPY').map(({ args }) => args)
const fromTree = stages.flatMap(copies).filter(([first]) => !first?.startsWith('--'))

/** The words of ENTRYPOINT or CMD, which Docker runs without a shell. */
function commandOf(name: string, stage = image): readonly string[] {
  const { args = [] } = stage.find((one) => one.name === name) ?? {}
  return JSON.parse(args.join(' '))
}

/** Lays what a COPY says; a folder's content goes into the target, as Docker has it. */
function copy(args: readonly string[], from: string, to: string): void {
  const target = args.at(-1) ?? '.'
  for (const source of args.slice(0, -1)) {
    const into = target.startsWith('.') ? join(to, basename(source)) : join(to, target)
    cpSync(join(from, source), into, { recursive: true })
  }
}

t.test('every file that it copies is there, and not kept from it', (t) => {
  const [first, ...kept] = readFileSync(join(root, '.dockerignore'), 'utf8').trim().split('\n')
  t.equal(first, '*', 'nothing by default')
  for (const source of fromTree.flatMap((args) => args.slice(0, -1))) {
    t.ok(existsSync(join(root, source)), source)
    t.ok(kept.includes(`!${source}`), `.dockerignore lets ${source} pass`)
  }
  t.end()
})

t.test('the image is pinned, and runs as an unprivileged user', (t) => {
  // The version that runs the whole test suite.
  const tested = /^ *24\) version=(24\.\d+\.\d+) ;;$/m.exec(
    readFileSync(join(root, '.ci/node'), 'utf8'),
  )
  for (const { args } of stages.flat().filter(({ name }) => name === 'FROM')) {
    const [tag, digest] = args[0]!.split('@')
    t.equal(tag, `node:${tested?.[1]}-bookworm-slim`)
    t.match(digest, /^sha256:[0-9a-f]{64}$/)
  }
  t.strictSame(
    image.filter(({ name }) => name === 'USER'),
    [{ name: 'USER', args: ['65532:65532'] }],
  )
  t.end()
})

t.test('the image of the node agent has the same files, and runs the agent', (t) => {
  t.strictSame(stages.length, 3)
  t.strictSame(copies(node), copies(image))
  t.strictSame(commandOf('ENTRYPOINT', node), commandOf('ENTRYPOINT'))
  t.strictSame(commandOf('CMD', node), ['node'])
  t.end()
})

/** What the test below depends on: all that `COPY` names except the code, and which packages the code names. */
function digestInputs(): string {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, 'package.json'), 'utf8'),
  )
  const files = fromTree.flatMap((args) => args.slice(0, -1)).filter((path) => path !== 'src')
  const code = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => readFileSync(join(root, 'src', path), 'utf8'))
  const used = Object.keys({ ...dependencies, ...devDependencies }).filter((name) =>
    code.some((text) => text.includes(`'${name}'`) || text.includes(`'${name}/`)),
  )
  const hash = createHash('sha256').update(`${process.version} ${used.sort()}`)
  for (const path of [...files, 'deploy/Dockerfile', 'test/deploy/dockerfile.test.ts']) {
    hash.update(readFileSync(join(root, path)))
  }
  return hash.digest('hex')
}

t.test('the copied files suffice to build, and the shipped ones to run', async (t) => {
  const [passed, digest] = [join(cacheFolder(), 'dockerfile-passed'), digestInputs()]
  if (existsSync(passed) && readFileSync(passed, 'utf8') === digest) {
    t.pass(`not run: it passed with these inputs; remove ${passed} to run it`)
    return
  }
  // Outside the tree, or what is missing would be found in its node_modules.
  const [stage, shipped] = [temporaryDirectory(t), temporaryDirectory(t)]
  for (const args of copies(build)) copy(args, root, stage)
  // `npm ci` of the same lock file made the tree's own.
  symlinkSync(join(root, 'node_modules'), join(stage, 'node_modules'))
  // Without types, which `npm run check` checks: files that are missing show when the program runs.
  const args = ['--prefix', stage, 'run', 'build', '--', '--noCheck']
  const { code, stdout, stderr } = await run('npm', args, 600_000)
  t.equal(code, 0, stdout + stderr)
  for (const args of copies(image)) {
    const [source = ''] = args
    if (source !== '--from=build') copy(args, root, shipped)
    else if (!args.includes('node_modules')) copy([basename(args[1]!), args[2]!], stage, shipped)
  }
  const production = execFileSync('npm', ['ls', '--omit=dev', '--parseable', '--all'], {
    cwd: root,
    encoding: 'utf8',
  })
  for (const folder of production.split('\n').map((path) => relative(root, path))) {
    // Those within others come along with them.
    if (!/^node_modules\/(@[^/]+\/)?[^/]+$/.test(folder)) continue
    mkdirSync(dirname(join(shipped, folder)), { recursive: true })
    symlinkSync(join(root, folder), join(shipped, folder))
  }
  const main = join(shipped, 'dist/main.js')
  const version = await run('node', ['--preserve-symlinks', main, '-version'])
  t.match(version, { code: 0, stdout: /^Sextant-/ })
  const corefile = join(shipped, 'Corefile')
  cpSync(join(root, 'Corefile.example'), corefile)
  cpSync(join(root, 'zones'), join(shipped, 'zones'), { recursive: true })
  const check = ['--preserve-symlinks', main, 'check', '-conf', corefile]
  const checked = await run('sh', ['-c', 'cd "$0" && exec node "$@"', shipped, ...check])
  t.equal(checked.code, 0, checked.stdout + checked.stderr)

  const [program, ...words] = [...commandOf('ENTRYPOINT'), ...commandOf('CMD')]
  t.equal(program, 'node')
  const command = words.map((word) => {
    return word.replace(/^\/sextant(?=\/)/, shipped).replace(/^\/etc\/sextant(?=\/)/, '.')
  })
  const server = await startServer(t, {
    corefile: '.:{PORT} {\n  bind 127.0.0.1\n  whoami\n}\n',
    wrapper: ['sh', '-c', `exec node --preserve-symlinks ${command.join(' ')}`],
  })
  server.process.kill('SIGTERM')
  t.equal(await server.exited(), 0, server.output())
  if (!t.passing()) return
  mkdirSync(cacheFolder(), { recursive: true })
  writeFileSync(passed, digest)
})
