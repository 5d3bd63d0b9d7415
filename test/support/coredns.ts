import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Test } from 'tap'
import { ask } from './dig.ts'
import { freePort } from './free-port.ts'
import { getText } from './get-text.ts'
import { layFiles } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

/** What CoreDNS needs beside its block of all zones. */
interface CorednsOptions {
  /** Other server blocks; `{PORT}` stands for the port. */
  readonly blocks?: string
  /** Files beside the Corefile: path to content. */
  readonly files?: Readonly<Record<string, string>>
}

/**
 * Starts CoreDNS with one block of all zones on 127.0.0.1, and waits until it is ready; it ends with
 * the test. Returns its port.
 */
export async function startCoredns(
  t: Test,
  directives: string,
  { blocks = '', files = {} }: CorednsOptions = {},
): Promise<number> {
  const [port, http] = [await freePort(), await freePort()]
  const directory = temporaryDirectory(t)
  const ready = `bind 127.0.0.1\nready 127.0.0.1:${http}`
  const Corefile = `.:${port} {\n${ready}\n${directives}\n}\n${blocks.replaceAll('{PORT}', String(port))}`
  layFiles(directory, { ...files, Corefile })
  const child = spawn('coredns', ['-conf', 'Corefile'], {
    cwd: directory,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += String(chunk)))
  child.stderr.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGKILL')
    await exit
  })
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`CoreDNS did not start:\n${printed}`)
    const page = await getText(`http://127.0.0.1:${http}/ready`).catch(() => undefined)
    // It is ready before it listens.
    return page?.status === 200 && (await ask('dig', port, ['.', 'SOA'])).status !== 'NONE'
  }, 'CoreDNS to be ready')
  return port
}
