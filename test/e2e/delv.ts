import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run } from '../support/peer.ts'

/** Has delv validate answers from a zone. */
export class Delv {
  readonly #options: readonly string[]

  /** `key`: the DNSKEY record that is trusted, owner first, in one line. `directory`: for a file of it. */
  constructor(port: number, directory: string, key: string) {
    const anchors = join(directory, 'anchors')
    writeFileSync(anchors, trustAnchors(key))
    const [owner] = key.split(/\s+/)
    this.#options = ['@127.0.0.1', '-p', String(port), '-a', anchors, `+root=${owner}`]
  }

  /** Asks and compares: is the answer validated, or accepted as unsigned; does the name exist? */
  async expect(t: Test, question: string, rcode: string, isSecure: boolean): Promise<void> {
    const { stdout, stderr } = await run('delv', [...this.#options, ...question.split(' ')])
    const printed = stdout + stderr
    t.match(printed, isSecure ? /fully validated/ : /unsigned answer/, `${question}: delv`)
    if (rcode === 'NXDOMAIN') t.match(printed, /ncache nxdomain/, `${question}: no such name`)
  }
}

/** Returns the DNSKEY record of the only key in a directory that signs keys, owner first. */
export function readKey(directory: string): string {
  const records = readdirSync(directory)
    .filter((name) => name.endsWith('.key'))
    .flatMap((name) => readFileSync(join(directory, name), 'latin1').split('\n'))
  return records.find((line) => line.includes(' DNSKEY 257 '))!
}

/** Returns the statement of BIND that trusts a DNSKEY record, which has its owner first. */
export function trustAnchors(key: string): string {
  const [owner] = key.split(/\s+/)
  const [flags, protocol, algorithm, ...rest] = key.replace(/^.* DNSKEY /, '').split(/\s+/)
  return `trust-anchors { ${owner} static-key ${flags} ${protocol} ${algorithm} "${rest.join('')}"; };`
}
