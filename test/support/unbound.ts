import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { run } from './peer.ts'
import { until } from './until.ts'

export interface UnboundOptions {
  /** Records of `example.`, as lines of a master file. */
  readonly records?: readonly string[]
  /** PEM; with it, a second port speaks TLS. */
  readonly certificate?: { readonly key: string; readonly cert: string }
  /** Use these ports again. */
  readonly ports?: UnboundPorts
  /** Listen on this address too. */
  readonly host?: string
  /** Master file of `example.`, in place of `records`: Unbound caches its records as those of another server. */
  readonly zoneText?: string
}

export interface UnboundPorts {
  readonly port: number
  readonly tlsPort: number
}

export interface RunningUnbound extends UnboundPorts {
  readonly directory: string
  readonly process: ChildProcess
}

/** Replaces the master file of Unbound, and empties its cache. */
export function reloadZone({ directory, process }: RunningUnbound, zoneText: string): void {
  writeFileSync(join(directory, 'zone'), zoneText)
  process.kill('SIGHUP')
}

/** Starts Unbound on 127.0.0.1 as a resolver that knows only its own records; it ends with the test. */
export async function startUnbound(t: Test, options: UnboundOptions): Promise<RunningUnbound> {
  const ports = options.ports ?? { port: await freePort(), tlsPort: await freePort() }
  const directory = mkdtempSync(join(tmpdir(), 'sextant-unbound-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
  writeFileSync(join(directory, 'unbound.conf'), configuration(options, ports, directory))
  if (options.zoneText !== undefined) writeFileSync(join(directory, 'zone'), options.zoneText)
  if (options.certificate !== undefined) {
    writeFileSync(join(directory, 'key.pem'), options.certificate.key)
    writeFileSync(join(directory, 'cert.pem'), options.certificate.cert)
  }
  const process = spawn('unbound', ['-d', '-c', join(directory, 'unbound.conf')], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  process.stderr.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(process, 'exit')
  t.teardown(async () => {
    process.kill('SIGKILL')
    await exit
  })
  await until(async () => {
    if (process.exitCode !== null) throw new Error(`unbound did not start:\n${printed}`)
    const args = ['@127.0.0.1', '-p', String(ports.port), '+tries=1', '+time=1', 'localhost']
    return (await run('dig', args)).stdout.includes('Got answer')
  }, 'unbound to answer')
  return { ...ports, directory, process }
}

function configuration(
  { records = [], certificate, host, zoneText }: UnboundOptions,
  { port, tlsPort }: UnboundPorts,
  directory: string,
): string {
  const tls = `  interface: 127.0.0.1@${tlsPort}
  tls-port: ${tlsPort}
  tls-service-key: "key.pem"
  tls-service-pem: "cert.pem"
`
  const local = `  local-zone: "example." static
${records.map((record) => `  local-data: '${record}'`).join('\n')}
`
  const zone = `auth-zone:
  name: "example."
  zonefile: "zone"
  for-downstream: no
`
  const hosts = `  interface: ${host}@${port}
  access-control: ${host} allow
`
  return `server:
  interface: 127.0.0.1@${port}
${host === undefined ? '' : hosts}${certificate === undefined ? '' : tls}  username: ""
  chroot: ""
  directory: "${directory}"
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  do-not-query-localhost: no
  module-config: "iterator"
${zoneText === undefined ? local : zone}remote-control:
  control-enable: no
`
}
