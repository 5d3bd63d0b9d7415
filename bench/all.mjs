// The benches that need no other server, in short, beside the same of an earlier commit: what became slower?
//   npm run bench [-- [--base REV] [--rounds 5] [--only parse,compose,...] [--without-servers]]
// REV (default: the commit before) is built once, in a worktree that stays in node_modules/.cache until another REV is asked
// for. Each round runs each bench in both checkouts; printed is the median of the rounds' ratios, new to old, and their range.
// A median above 1.05 is marked. Then whole servers: user CPU time per query, and what a start costs.
// Uncommitted changes are measured too. Benches of the base are its own; lines that only one of both prints are left out.
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { median } from './median.mjs'

/** Each takes some seconds with these arguments. */
const BENCHES = {
  parse: [],
  compose: [],
  choice: [],
  plugins: [],
  patterns: [],
  egress: ['3'],
  'xdp-cost': ['300'],
}
const SLOWER = 1.05
const SHAPES = 'plain,geo,chain,nxdomain'

const { values } = parseArgs({
  options: {
    base: { type: 'string', default: 'HEAD~1' },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: Object.keys(BENCHES).join() },
    'without-servers': { type: 'boolean', default: false },
  },
})
const root = fileURLToPath(new URL('..', import.meta.url))
const git = (...words) => execFileSync('git', words, { cwd: root, encoding: 'utf8' }).trim()

/** The folder of the base, built. */
function prepareBase() {
  const revision = git('rev-parse', '--short=12', `${values.base}^{commit}`)
  const folder = join(root, 'node_modules/.cache/sextant-bench')
  const place = join(folder, revision)
  if (existsSync(join(place, 'dist/main.js'))) return place
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) git('worktree', 'remove', '--force', join(folder, name))
  git('worktree', 'prune')
  git('worktree', 'add', '--detach', place, revision)
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
  execFileSync('npx', ['tsc', '-b', 'tsconfig.build.json', '--noCheck'], { cwd: place })
  return place
}

/** The ns of each line that a bench prints, by the line without its numbers. */
function figuresOf(place, name) {
  const args = ['--expose-gc', `bench/${name}.mjs`, ...BENCHES[name]]
  const env = { ...process.env, SEXTANT_BENCH_SHORT: '1' }
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: place,
    env,
    encoding: 'utf8',
  })
  if (status !== 0) {
    console.log(`${name} failed in ${place}: ${stderr.trim().split('\n').slice(-3).join(' ')}`)
    return new Map()
  }
  const lines = stdout.split('\n').flatMap((line) => {
    const found = /(\d+(?:\.\d+)?) ns\b/.exec(line)
    return found === null ? [] : [[titleOf(line), Number(found[1])]]
  })
  return new Map(lines)
}

/** What stays the same from run to run. */
function titleOf(line) {
  return line
    .replace(/[+-]?\d+(\.\d+)? ns(\/\w+)?( more)?|\(minimum.*|^[\s\d+-]+/g, ' ')
    .replace(/[\s,:]+/g, ' ')
    .trim()
}

function compare(name, base) {
  const ratios = new Map()
  const ns = new Map()
  for (let round = 0; round < Number(values.rounds); round++) {
    const order = round % 2 === 0 ? [base, root] : [root, base]
    const got = new Map(order.map((place) => [place, figuresOf(place, name)]))
    for (const [title, value] of got.get(root)) {
      const before = got.get(base).get(title)
      if (before === undefined || before === 0) continue
      ratios.set(title, [...(ratios.get(title) ?? []), value / before])
      ns.set(title, [...(ns.get(title) ?? []), value])
    }
  }
  for (const [title, all] of ratios) {
    const [least, middle, most] = [Math.min(...all), median(all), Math.max(...all)]
    const mark = middle > SLOWER ? '  <- slower' : ''
    const text = `${middle.toFixed(2)} [${least.toFixed(2)}-${most.toFixed(2)}]`
    console.log(
      `${text}  ${median(ns.get(title)).toFixed(0).padStart(6)} ns  ${name}: ${title}${mark}`,
    )
  }
}

const base = prepareBase()
const load = loadavg().map((value) => value.toFixed(1))
console.log(
  `against ${values.base} (${base.slice(-12)}), load average ${load}, node ${process.version}`,
)
for (const name of values.only.split(',')) compare(name, base)
if (!values['without-servers']) {
  const inherit = { cwd: root, stdio: 'inherit' }
  const shapes = [
    'bench/shapes.mjs',
    values.rounds,
    '1',
    '--base',
    base,
    '--peers',
    '',
    '--shapes',
    SHAPES,
  ]
  spawnSync(process.execPath, shapes, inherit)
  spawnSync(process.execPath, ['bench/start.mjs', base, values.rounds], inherit)
}
