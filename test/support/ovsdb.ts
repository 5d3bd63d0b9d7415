import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { freePort } from './free-port.ts'
import { run } from './peer.ts'
import { until } from './until.ts'

/** Of Debian's ovn-central. */
const SCHEMA = '/usr/share/ovn/ovn-nb.ovsschema'

/** PEM files. */
export interface ServerFiles {
  readonly key: string
  readonly certificate: string
  readonly authority: string
}

/** An ovsdb-server process with a database OVN_Northbound of its own. */
export class NorthboundServer {
  readonly port: number
  /** `tcp:127.0.0.1:PORT`, or `ssl:` */
  readonly remote: string
  readonly directory: string
  readonly #files: ServerFiles | undefined
  #process: ChildProcess | undefined

  private constructor(port: number, directory: string, files: ServerFiles | undefined) {
    this.port = port
    this.directory = directory
    this.#files = files
    this.remote = `${files === undefined ? 'tcp' : 'ssl'}:127.0.0.1:${port}`
  }

  /** Starts a server on 127.0.0.1; it ends with the test. */
  static async start(t: Test, files?: ServerFiles): Promise<NorthboundServer> {
    const server = await NorthboundServer.#make(t, files)
    await tool('ovsdb-tool', ['create', server.#database, SCHEMA])
    await server.resume()
    return server
  }

  /** Starts a cluster of three servers. */
  static async startCluster(t: Test): Promise<readonly NorthboundServer[]> {
    const raft: string[] = []
    const servers: NorthboundServer[] = []
    for (let i = 0; i < 3; i++) {
      const server = await NorthboundServer.#make(t, undefined)
      const own = `tcp:127.0.0.1:${await freePort()}`
      const args =
        i === 0
          ? ['create-cluster', server.#database, SCHEMA, own]
          : ['join-cluster', server.#database, 'OVN_Northbound', own, ...raft]
      await tool('ovsdb-tool', args)
      raft.push(own)
      await server.resume()
      servers.push(server)
    }
    return servers
  }

  static async #make(t: Test, files: ServerFiles | undefined): Promise<NorthboundServer> {
    const directory = mkdtempSync(join(tmpdir(), 'sextant-ovsdb-'))
    const server = new NorthboundServer(await freePort(), directory, files)
    t.teardown(async () => {
      await server.kill()
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    })
    return server
  }

  get socket(): string {
    return `unix:${join(this.directory, 'db.sock')}`
  }

  get #database(): string {
    return join(this.directory, 'nb.db')
  }

  /** Starts the process; again after `kill`. */
  async resume(): Promise<void> {
    const socket = join(this.directory, 'db.sock')
    rmSync(socket, { force: true })
    const { key, certificate, authority } = this.#files ?? {}
    const args = [
      `--remote=p${this.remote.replace(/127.*/, '')}${this.port}:127.0.0.1`,
      `--remote=punix:${socket}`,
      `--unixctl=${join(this.directory, 'ctl')}`,
      ...(key === undefined ? [] : [`--private-key=${key}`]),
      ...(certificate === undefined ? [] : [`--certificate=${certificate}`]),
      ...(authority === undefined ? [] : [`--ca-cert=${authority}`]),
      this.#database,
    ]
    const child = spawn('ovsdb-server', args, { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#process = child
    let printed = ''
    child.stderr.on('data', (chunk) => (printed += String(chunk)))
    await until(async () => {
      if (child.exitCode !== null) throw new Error(`ovsdb-server did not start:\n${printed}`)
      if (!existsSync(socket)) return false
      const { code, stdout } = await run('ovsdb-client', ['list-dbs', this.socket])
      return code === 0 && stdout.includes('OVN_Northbound')
    }, 'ovsdb-server to answer')
  }

  /** Ends the process without warning, as `kill -9` does. */
  async kill(): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGKILL')
    await exit
  }

  /** Stops the process, which keeps its connections, or lets it continue. */
  freeze(isFrozen: boolean): void {
    this.#process?.kill(isFrozen ? 'SIGSTOP' : 'SIGCONT')
  }

  /** Runs a transaction with Open vSwitch's own client. */
  async transact(...operations: readonly object[]): Promise<readonly unknown[]> {
    const transaction = JSON.stringify(['OVN_Northbound', ...operations])
    const printed = await tool('ovsdb-client', ['transact', this.socket, transaction])
    const results: unknown = JSON.parse(printed)
    if (!Array.isArray(results)) throw new Error(`ovsdb-client printed ${printed}`)
    const refused = results.find((result) => typeof result?.error === 'string')
    if (refused !== undefined) throw new Error(JSON.stringify(refused))
    return results
  }

  /** True if this server leads its cluster. */
  async isLeader(): Promise<boolean> {
    const transaction = JSON.stringify([
      '_Server',
      { op: 'select', table: 'Database', where: [['name', '==', 'OVN_Northbound']] },
    ])
    const printed = await tool('ovsdb-client', ['transact', this.socket, transaction])
    return JSON.parse(printed)[0].rows[0]?.leader === true
  }
}

async function tool(name: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(name, args)
  if (code !== 0) throw new Error(`${name} ${args.join(' ')}: ${stderr}`)
  return stdout
}
