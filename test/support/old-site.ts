import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { temporaryDirectory } from './cluster.ts'
import type { Lab, LabProcess } from './lab.ts'
import { root } from './server.ts'

/** Nobody may transfer its zones, and without a `site` none of its endpoints is told whole. */
const corefileOf = (zone: string): string =>
  ['kdrnt', zone].map((name) => `${name} {\n  kuadrant {\n    manifests records\n  }\n}\n`).join('')

/** A site whose nameserver tells its records only as those of 2025 did (v1), on a host of the lab. */
export class OldSite {
  readonly server: LabProcess
  readonly #directory: string

  private constructor(server: LabProcess, directory: string) {
    this.server = server
    this.#directory = directory
  }

  /** `address`: without a prefix length; `zone`: that of its records, without a final dot. */
  static async start(
    t: Test,
    lab: Lab,
    { address, zone }: { readonly address: string; readonly zone: string },
  ): Promise<OldSite> {
    const directory = temporaryDirectory(t)
    mkdirSync(join(directory, 'records'))
    writeFileSync(join(directory, 'Corefile'), corefileOf(zone))
    const host = await lab.addHost('old', [`${address}/24`])
    const command = [process.execPath, join(root, 'dist/main.js'), 'serve', '-conf', 'Corefile']
    return new OldSite(host.start(command, { cwd: directory }), directory)
  }

  /** Puts a record in the place of that of its name. */
  put(name: string, record: object): void {
    const next = join(this.#directory, 'next')
    writeFileSync(next, JSON.stringify(record))
    renameSync(next, join(this.#directory, 'records', `${name}.json`))
  }
}
