import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { digAt, type RunningPeer, startPeer } from '../support/nameservers.ts'
import { run } from '../support/peer.ts'
import { until } from '../support/until.ts'

/** A signed zone of Knot, which follows the CDS of its children (RFC 7344). */
export class SignedParent {
  /** The DNSKEY record to trust, owner first. */
  readonly key: string
  readonly #zone: string
  readonly #knot: RunningPeer
  readonly #ds = new Map<string, string>()

  private constructor(
    zone: string,
    knot: RunningPeer,
    key: string,
    children: Readonly<Record<string, string>>,
  ) {
    this.key = key
    for (const [child, ds] of Object.entries(children)) this.#ds.set(child, ds.toUpperCase())
    this.#zone = zone
    this.#knot = knot
  }

  /** `children`: zones without the final dot, and their DS rdata; `port`: of a server of them. */
  static async start(
    t: Test,
    zone: string,
    children: Readonly<Record<string, string>>,
    port: number,
  ): Promise<SignedParent> {
    const lines = Object.entries(children).map(
      ([child, ds]) =>
        `${child}. NS ns.${child}.\n${child}. 1 DS ${ds}\nns.${child}. A 127.0.0.1\n`,
    )
    const zoneText = `$TTL 60\n${zone}. SOA ns host 1 3600 600 86400 1\n${zone}. NS ns\nns A 127.0.0.1\n`
    const knot = await startPeer(t, 'knotd', {
      ...{ zone, port, signed: false, dnssec: 'nsec' },
      zoneText: zoneText + lines.join(''),
    })
    let key = ''
    await until(async () => {
      const records = await recordsOf(knot.port, zone, 'DNSKEY')
      key = records.find((record) => / DNSKEY 257 /.test(record)) ?? ''
      return key !== ''
    }, 'the keys of the parent')
    return new SignedParent(zone, knot, key, children)
  }

  get port(): number {
    return this.#knot.port
  }

  /** Makes the DS of a child those that all its servers ask for. Returns true if they changed. */
  async follow(child: string, ports: readonly number[]): Promise<boolean> {
    const asked = await Promise.all(ports.map((port) => recordsOf(port, child, 'CDS')))
    const texts = asked.map((records) => records.map(rdataOf).sort().join('\n'))
    const [first = ''] = texts
    if (first === '' || texts.some((text) => text !== first)) return false
    if (first === this.#ds.get(child)) return false
    const lines = first.split('\n').map((rdata) => `update add ${child}. 1 DS ${rdata}`)
    const update = `server 127.0.0.1 ${this.port}\nzone ${this.#zone}.\nupdate delete ${child}. DS\n`
    const path = join(this.#knot.directory, 'update')
    writeFileSync(path, `${update}${lines.join('\n')}\nsend\n`)
    const { code, stderr } = await run('nsupdate', [path])
    if (code !== 0) throw new Error(`nsupdate: ${stderr}`)
    this.#ds.set(child, first)
    return true
  }
}

async function recordsOf(port: number, name: string, type: string): Promise<string[]> {
  const text = await digAt(port, ['+noall', '+answer', '+norec', `${name}.`, type])
  return text
    .split('\n')
    .map((line) => line.trim().replace(/\s+/g, ' '))
    .filter((line) => line.includes(` ${type} `))
}

/** Returns the rdata of a CDS record, as `printRdata` prints it. */
function rdataOf(record: string): string {
  const [tag, algorithm, digest, ...hex] = record.replace(/^.* CDS /, '').split(' ')
  return `${tag} ${algorithm} ${digest} ${hex.join('').toUpperCase()}`
}
