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
    const knot = await startPeer(t, 'knotd', {
      ...{ zone, port, signed: false, dnssec: 'nsec' },
      zoneText: parentText(zone, children),
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
    await this.put(this.port, child, first.split('\n'))
    this.#ds.set(child, first)
    return true
  }

  /** The DS rdata of a child. */
  dsOf(child: string): readonly string[] {
    return this.#ds.get(child)!.split('\n')
  }

  /** Replaces the DS of a child at a server of the parent zone. */
  async put(port: number, child: string, rdata: readonly string[]): Promise<void> {
    const lines = rdata.map((one) => `update add ${child}. 1 DS ${one}`)
    const update = `server 127.0.0.1 ${port}\nzone ${this.#zone}.\nupdate delete ${child}. DS\n`
    const path = join(this.#knot.directory, 'update')
    writeFileSync(path, `${update}${lines.join('\n')}\nsend\n`)
    const { code, stderr } = await run('nsupdate', [path])
    if (code !== 0) throw new Error(`nsupdate: ${stderr}`)
  }
}

/** Returns an unsigned parent zone with delegations to 127.0.0.1. */
export function parentText(zone: string, children: Readonly<Record<string, string>>): string {
  const lines = Object.entries(children).map(
    ([child, ds]) => `${child}. NS ns.${child}.\n${child}. 1 DS ${ds}\nns.${child}. A 127.0.0.1\n`,
  )
  const apex = `$TTL 60\n${zone}. SOA ns host 1 3600 600 86400 1\n${zone}. NS ns\nns A 127.0.0.1\n`
  return apex + lines.join('')
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
