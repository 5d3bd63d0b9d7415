import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  digAt,
  digKey,
  KEY,
  type PeerName,
  type RunningPeer,
  serialAt,
  startPeer,
  transferred,
} from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { freePort, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { EditedZone, NAMES } from './edited-zone.ts'

// Long: it starts many servers.

const ZONE = 'z.example'
const PEERS: readonly PeerName[] = ['named', 'knotd', 'nsd']
/** Edits of the zone that others follow through; 1000 where the environment says so. */
const EDITS = Number(process.env.SEXTANT_TRANSFER_EDITS ?? 60)
t.setTimeout(900_000 + EDITS * 1000)

const tsigBlock = `tsig {\n secret ${KEY.name} ${KEY.secret}\n }`
const signedBy = (signed: boolean): string => (signed ? `key ${KEY.name}` : '')

function putZone(server: RunningServer, text: string): void {
  writeFileSync(join(server.directory, 'db.new'), text)
  renameSync(join(server.directory, 'db.new'), join(server.directory, 'db'))
}

const haveSerial =
  (peers: readonly RunningPeer[], serial: number) => async (): Promise<boolean> => {
    const serials = await Promise.all(peers.map(({ port }) => serialAt(port, ZONE)))
    return serials.every((found) => found === serial)
  }

for (const signed of [false, true]) {
  const how = signed ? 'signed' : 'unsigned'
  t.test(
    `BIND, Knot and NSD follow us through ${EDITS} edits, ${how}`,
    needs('dig', ...PEERS),
    async (t) => {
      const zone = new EditedZone()
      const port = await freePort()
      const peers: RunningPeer[] = []
      for (const name of PEERS) peers.push(await startPeer(t, name, { zone: ZONE, port, signed }))
      const to = peers.map((peer) => `127.0.0.1:${peer.port}`).join(' ')
      const corefile = `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 prometheus 127.0.0.1:${await freePort()}
 ${tsigBlock}
 transfer {
  to ${to}
  ${signedBy(signed)}
 }
 file db {
  reload 20ms
 }
}
`
      const beside = { port, directory: temporaryDirectory(t) }
      const files = { db: zone.text() }
      const server = await startServer(t, { corefile, files, beside })
      await until(haveSerial(peers, zone.serial), 'all peers to have the first serial')
      for (let i = 0; i < EDITS; i++) {
        zone.edit()
        putZone(server, zone.text())
        const arrived = (): boolean => server.output().includes(`with ${zone.serial} SOA serial`)
        await until(arrived, `our serial ${zone.serial}`)
      }
      await until(haveSerial(peers, zone.serial), 'all peers to have the last serial').catch(
        (error) => t.fail(`${error}\n${peers.map((p) => p.output().slice(-1500)).join('\n---\n')}`),
      )
      // A secondary that is far behind gets the whole zone, since that is less; one that lacks the last edit gets the edit.
      zone.edit()
      putZone(server, zone.text())
      const last = `with ${zone.serial} SOA serial`
      await until(() => server.output().includes(last), 'one more edit')
      await until(haveSerial(peers, zone.serial), 'all peers to have that', 50_000)
      const sinceThen = (kind: string): number =>
        server.output().split(last)[1]!.split(`${kind} of ${ZONE}. `).length - 1
      await until(() => sinceThen('IXFR') >= PEERS.length, 'the differences to be logged')
      t.equal(sinceThen('AXFR'), 0, 'no secondary got the whole zone')
      const ours = await transferred(server.port, ZONE, signed)
      t.ok(ours.length > NAMES, `${ours.length} records`)
      for (const [i, peer] of peers.entries()) {
        t.strictSame(await transferred(peer.port, ZONE), ours, `${PEERS[i]} has what we have`)
      }
      const log = server.output()
      const sent = (kind: string): number => log.split(`${kind} of ${ZONE}. `).length - 1
      t.ok(sent('AXFR') >= PEERS.length, `${sent('AXFR')} AXFR`)
      t.ok(sent('IXFR') >= PEERS.length, `${sent('IXFR')} IXFR`)
      t.notMatch(log, KEY.secret, 'the secret is not in the log')
      t.notMatch(log, /\[ERROR\]/)
      if (!signed) return
      const unsigned = await digAt(server.port, [ZONE, 'AXFR'])
      t.match(unsigned, 'Transfer failed', 'who does not sign gets nothing')
      t.match(await digAt(server.port, [...digKey(), ZONE, 'AXFR']), 'XFR size')
    },
  )
}
