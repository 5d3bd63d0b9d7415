import { Resolver } from 'node:dns/promises'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  KEY,
  type PeerName,
  type RunningPeer,
  startPeer,
  transferred,
} from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { EditedZone } from './edited-zone.ts'

// Long: it starts many servers.

// Each edit waits for most of a second.
t.jobs = 6

const ZONE = 'z.example'
const PEERS: readonly PeerName[] = ['named', 'knotd', 'nsd']
const EDITS = 20
/** How far we may be behind on a busy machine, since a zone is transferred once a second. Its refresh timer is far longer. */
const BEHIND_MS = 10_000
const SEEN_MS = 120_000

const tsigBlock = `tsig {\n secret ${KEY.name} ${KEY.secret}\n }`
const signedBy = (signed: boolean): string => (signed ? `key ${KEY.name}` : '')

/** Asks a server of ours or another for its serial, over and over. */
class SerialWatch {
  readonly #resolver = new Resolver({ timeout: 1000, tries: 1 })

  constructor(port: number) {
    this.#resolver.setServers([`127.0.0.1:${port}`])
  }

  /** Waits for a serial that is right; returns it. */
  async until(isRight: (serial: number) => boolean, what: string): Promise<number> {
    let serial = Number.NaN
    const look = async () => {
      const soa = await this.#resolver.resolveSoa(ZONE).catch(() => undefined)
      serial = soa?.serial ?? Number.NaN
      return isRight(serial)
    }
    await until(look, what, SEEN_MS)
    return serial
  }
}

/** Adds and removes records of a zone that a peer has. */
async function editAt(t: Test, name: PeerName, peer: RunningPeer, zone: EditedZone): Promise<void> {
  zone.edit()
  if (name === 'nsd') {
    writeFileSync(join(peer.directory, 'zone'), zone.text())
    peer.signal('SIGHUP')
    return
  }
  const { serial } = zone
  const lines = [
    `server 127.0.0.1 ${peer.port}`,
    `zone ${ZONE}`,
    `update delete u${serial - 2}.${ZONE}`,
    `update add u${serial}.${ZONE} 60 A 192.0.2.${serial}`,
    `update add u${serial}.${ZONE} 60 TXT "serial ${serial}"`,
    'send',
  ]
  writeFileSync(join(peer.directory, 'update'), `${lines.join('\n')}\n`)
  const { code, stderr } = await run('nsupdate', [join(peer.directory, 'update')])
  t.equal(code, 0, stderr)
}

async function follow(t: Test, name: PeerName, signed: boolean): Promise<void> {
  const zone = new EditedZone()
  const port = await freePort()
  const peer = await startPeer(t, name, { zone: ZONE, port, signed, zoneText: zone.text() })
  const corefile = `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 ${tsigBlock}
 transfer {
  to 127.0.0.1
 }
 secondary {
  transfer from 127.0.0.1:${peer.port}
  ${signedBy(signed)}
 }
}
`
  const directory = mkdtempSync(join(tmpdir(), 'sextant-'))
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const server = await startServer(t, { corefile, beside: { port, directory } })
  const [here, there] = [new SerialWatch(server.port), new SerialWatch(peer.port)]
  await here.until((serial) => serial > 0, 'the zone')
  const takenMs: number[] = []
  for (let i = 0; i < EDITS; i++) {
    const before = await there.until((serial) => serial > 0, `${name} to answer`)
    await editAt(t, name, peer, zone)
    const serial = await there.until((found) => found > before, `${name} to have the edit`)
    const startMs = performance.now()
    await here.until((found) => found === serial, `serial ${serial} of ${name}`)
    takenMs.push(Math.round(performance.now() - startMs))
  }
  takenMs.sort((a, b) => a - b)
  t.comment(`behind ${name} by ${takenMs} ms`)
  t.ok(takenMs[EDITS >> 2]! <= BEHIND_MS, `${name}: ${takenMs} ms`)
  const theirs = await transferred(peer.port, ZONE, signed)
  t.ok(theirs.length > 10, `${theirs.length} records`)
  t.strictSame(await transferred(server.port, ZONE), theirs, `we have what ${name} has`)
  await server.prints(/transferred \(AXFR\)/)
  await server.prints(/transferred \(IXFR\)/)
  const came = (kind: string): number => server.output().split(`transferred (${kind})`).length - 1
  t.comment(`of ${name}: ${came('IXFR')} IXFR, ${came('AXFR')} AXFR`)
  t.ok(came('IXFR') > EDITS / 2, `${name}: most edits came as differences, ${came('IXFR')}`)
  t.notMatch(server.output(), KEY.secret, 'the secret is not in the log')
}

for (const name of PEERS) {
  for (const signed of [false, true]) {
    const how = signed ? 'signed' : 'unsigned'
    const options = { ...needs('dig', 'nsupdate', name), buffered: true }
    t.test(`we follow ${name} through ${EDITS} edits, ${how}`, options, (t) =>
      follow(t, name, signed),
    )
  }
}
