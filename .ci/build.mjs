// Builds dist, and prints a line with its progress if this takes long: nothing if dist is up to date.
import { spawn } from 'node:child_process'
import { buildConsole } from './console.mjs'

/** A build without a change takes less. */
const QUIET_MS = 1500
const [TERMINAL_MS, LINE_MS] = [500, 5000]

const startMs = Date.now()
const isTerminal = process.stderr.isTTY === true
const start = isTerminal ? '\r\x1b[K' : ''
const end = isTerminal ? '' : '\n'
let timer = setTimeout(() => {
  print()
  timer = setInterval(print, isTerminal ? TERMINAL_MS : LINE_MS)
}, QUIET_MS)

function print() {
  const seconds = Math.round((Date.now() - startMs) / 1000)
  process.stderr.write(`${start}Building Sextant: ${seconds} s (about 15 s the first time)${end}`)
}

const tsc = spawn(
  process.execPath,
  ['node_modules/typescript/bin/tsc', '-b', 'tsconfig.build.json'],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
  },
)
const output = []
tsc.stdout.on('data', (part) => output.push(part))
const bundle = buildConsole()
tsc.on('close', async (code) => {
  const isBundled = await bundle
  clearTimeout(timer)
  process.stderr.write(start)
  process.stdout.write(Buffer.concat(output))
  process.exitCode = code === 0 && !isBundled ? 1 : (code ?? 1)
})
