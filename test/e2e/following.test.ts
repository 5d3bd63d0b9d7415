import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { EditedZone } from '../support/edited-zone.ts'
import {
  KEY,
  type PeerName,
  type RunningPeer,
  serialAt,
  startPeer,
  transferred,
} from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const ZONE = 'z.example'
const PEERS: readonly PeerName[] = ['named', 'knotd', 'nsd']
const EDITS = 3

const tsigBlock = `tsig {\n secret ${KEY.name} ${KEY.secret}\n }`
const signedBy = (signed: boolean): string => (signed ? `key ${KEY.name}` : '')

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
  await until(async () => (await serialAt(server.port, ZONE)) > 0, 'the zone')
  for (let i = 0; i < EDITS; i++) {
    const before = await serialAt(peer.port, ZONE)
    await editAt(t, name, peer, zone)
    let serial = before
    const changed = async () => (serial = await serialAt(peer.port, ZONE)) > before
    await until(changed, `${name} to have the edit`)
    const arrived = async () => (await serialAt(server.port, ZONE)) === serial
    await until(arrived, `serial ${serial} of ${name}`, 30_000)
  }
  const theirs = await transferred(peer.port, ZONE, signed)
  t.ok(theirs.length > 10, `${theirs.length} records`)
  t.strictSame(await transferred(server.port, ZONE), theirs, `we have what ${name} has`)
  t.match(server.output(), /transferred \(AXFR\)/, name)
  t.match(server.output(), /transferred \(IXFR\)/, name)
  t.notMatch(server.output(), KEY.secret, 'the secret is not in the log')
}

for (const signed of [false, true]) {
  const how = signed ? 'signed' : 'unsigned'
  t.test(`we follow BIND, Knot and NSD, ${how}`, needs('dig', 'nsupdate', ...PEERS), async (t) => {
    await Promise.all(PEERS.map((name) => follow(t, name, signed)))
  })
}
