import { spawn } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { LineBuffer, printLine } from '../../src/base/telemetry/lines.ts'
import { printData } from '../../src/cli/data-format.ts'
import { composeLine, type Line } from '../../src/cli/tones.ts'

t.test('JSON of any length is printed whole', (t) => {
  const printed: string[] = []
  const write = (octets: Buffer): void => {
    printed.push(octets.toString())
  }
  const lines = new LineBuffer({ isBusy: () => false, write }, () => {})
  const data = { names: Array.from({ length: 50_000 }, (_, i) => `name${i}.example.com.`) }
  const print = (line: Line): void => printLine(lines, composeLine(line, false))
  printData({ print }, 'json', { data: () => data, table: () => [] })
  lines.flush()
  t.same(JSON.parse(printed.join('')), data)
  t.end()
})

t.test('errors and lines are on a terminal in the order in which they were printed', async (t) => {
  const url = new URL('../../src/cli/output.ts', import.meta.url).href
  const text = `
    const { processOutput } = await import('${url}')
    const output = processOutput(false)
    output.print('first')
    output.printError('second')
    output.print('third')
    output.printError('fourth')`
  const args = ['--import=./test/support/test-process.mjs', '--input-type=module', '-e', text]
  const shell = ['-c', 'exec "$@" 2>&1', 'sh', process.execPath, ...args]
  const child = spawn('sh', shell, { stdio: ['ignore', 'pipe', 'inherit'] })
  const printed: Buffer[] = []
  for await (const chunk of child.stdout) printed.push(chunk)
  t.equal(Buffer.concat(printed).toString(), 'first\nsecond\nthird\nfourth\n')
})

t.test('a command ends only once a slow reader has all of its output', async (t) => {
  const url = new URL('../../src/cli/output.ts', import.meta.url).href
  const text = `
    const { processOutput } = await import('${url}')
    const output = processOutput(false)
    for (let i = 0; i < 300000; i++) output.print('line ' + i)
    output.flush()
    process.stderr.write('printed')
    await output.written()
    process.exit(0)`
  const args = ['--import=./test/support/test-process.mjs', '--input-type=module', '-e', text]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill())
  await once(child.stderr, 'data')
  const printed: Buffer[] = []
  for await (const chunk of child.stdout) printed.push(chunk)
  const lines = Buffer.concat(printed).toString().split('\n')
  t.equal(lines.length, 300_001)
  t.equal(lines[299_999], 'line 299999')
})
