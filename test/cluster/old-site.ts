import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { HostNetwork, HostProcess } from '../support/host-network.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Without `transfer` no peer may transfer its zones; without `site` it exports no endpoint as v2. */
const corefileOf = (zone: string): string =>
  ['kdrnt', zone].map((name) => `${name} {\n  kuadrant {\n    manifests records\n  }\n}\n`).join('')

/** A site whose nameserver exports v1 only, as Kuadrant did in 2025, on a host of the network. */
export class OldSite {
  readonly server: HostProcess
  readonly #directory: string

  private constructor(server: HostProcess, directory: string) {
    this.server = server
    this.#directory = directory
  }

  /** `address`: without a prefix length; `zone`: that of its records, without a final dot. */
  static async start(
    t: Test,
    network: HostNetwork,
    { address, zone }: { readonly address: string; readonly zone: string },
  ): Promise<OldSite> {
    const directory = temporaryDirectory(t)
    mkdirSync(join(directory, 'records'))
    writeFileSync(join(directory, 'Corefile'), corefileOf(zone))
    const host = await network.addHost('old', [`${address}/24`])
    const command = [process.execPath, join(root, 'dist/main.js'), 'serve', '-conf', 'Corefile']
    return new OldSite(host.start(command, { cwd: directory }), directory)
  }

  /** Creates or replaces a record. */
  put(name: string, record: object): void {
    const next = join(this.#directory, 'next')
    writeFileSync(next, JSON.stringify(record))
    renameSync(next, join(this.#directory, 'records', `${name}.json`))
  }
}
