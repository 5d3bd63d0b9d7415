import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ask } from '../support/dig.ts'
import { freePort } from '../support/server.ts'
import { until } from '../support/until.ts'

interface Validated {
  /** Of the server of the zones. */
  readonly port: number
  /** For the files of Unbound. */
  readonly directory: string
  /** The DNSKEY record that is trusted, owner first. */
  readonly key: string
  /** Zones that are asked there, without the final dot. */
  readonly zones: readonly string[]
}

/** Starts Unbound as a resolver that validates; returns its port. It ends with the test. */
export async function startValidator(t: Test, validated: Validated): Promise<number> {
  const { port, directory, key, zones } = validated
  const own = await freePort()
  const stub = (zone: string): string => {
    return `stub-zone:\n  name: "${zone}"\n  stub-addr: 127.0.0.1@${port}\n  stub-no-cache: yes\n`
  }
  const conf = `server:
  interface: 127.0.0.1@${own}
  username: ""
  chroot: ""
  directory: "${directory}"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  do-not-query-localhost: no
  module-config: "validator iterator"
  trust-anchor: "${key.replace(/\s+/g, ' ')}"
  aggressive-nsec: no
remote-control:
  control-enable: no
${zones.map(stub).join('')}`
  writeFileSync(join(directory, 'unbound.conf'), conf)
  const process = spawn('unbound', ['-d', '-c', join(directory, 'unbound.conf')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exit = once(process, 'exit')
  t.teardown(async () => {
    process.kill('SIGKILL')
    await exit
  })
  let printed = ''
  process.stderr.on('data', (chunk) => (printed += String(chunk)))
  await until(async () => {
    if (process.exitCode !== null) throw new Error(`unbound did not start:\n${printed}`)
    const { text } = await ask('dig', own, ['+tries=1', '+time=1', 'localhost', 'A'])
    return text.includes('Got answer')
  }, 'unbound to answer')
  return own
}
