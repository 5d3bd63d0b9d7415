import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { FLAGS_KSK, writeKey } from '../plugins/dnssec/stage.ts'
import {
  type PeerName,
  type RunningPeer,
  serialAt,
  startPeer,
  transferred,
} from '../support/nameservers.ts'
import { needs, run } from '../support/peer.ts'
import { freePort, putFile, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { EditedZone, NAMES } from './edited-zone.ts'

// Long: it starts many servers.

const ZONE = 'z.example'
const PEERS: readonly PeerName[] = ['named', 'knotd', 'nsd']
/** Edits of each zone that others follow through; 1000 where the environment says so. */
const EDITS = Number(process.env.SEXTANT_TRANSFER_EDITS ?? 30)
t.setTimeout(900_000 + EDITS * 2000)

/** A zone that we sign, and its edits. */
interface Source {
  readonly directive: string
  /** Records that it has at least, with signatures. */
  readonly records: number
  edit(): readonly [path: string, text: string]
}

function fileSource(): Source {
  const zone = new EditedZone()
  return {
    directive: 'file db {\n  reload 20ms\n }',
    records: 3 * NAMES,
    edit: () => {
      zone.edit()
      return ['db', zone.text()]
    },
  }
}

const tools = needs('dig', 'dnssec-verify', 'ldns-verify-zone', 'kzonecheck', ...PEERS)
t.test(`BIND, Knot and NSD follow a file that we sign, through ${EDITS} edits`, tools, (t) => {
  return follow(t, fileSource())
})

async function follow(t: Test, source: Source): Promise<void> {
  const port = await freePort()
  const peers: RunningPeer[] = []
  for (const name of PEERS)
    peers.push(await startPeer(t, name, { zone: ZONE, port, signed: false }))
  const directory = temporaryDirectory(t)
  const { path } = await writeKey(directory, `${ZONE}.`, { flags: FLAGS_KSK })
  const corefile = `${ZONE}:{PORT} {
 bind 127.0.0.1
 errors
 dnssec {
  key file ${path}
 }
 transfer {
  to 127.0.0.1 ${peers.map((peer) => `127.0.0.1:${peer.port}`).join(' ')}
 }
 ${source.directive}
}
`
  const [name, text] = source.edit()
  const server = await startServer(t, {
    corefile,
    files: { [name]: text },
    beside: { port, directory },
  })
  const areEqual = async (): Promise<boolean> => {
    const serials = await Promise.all([server, ...peers].map(({ port }) => serialAt(port, ZONE)))
    return serials.every((serial) => serial === serials[0])
  }
  await until(areEqual, 'all peers to have the zone')
  for (let i = 0; i < EDITS; i++) await edit(server, source)
  await until(areEqual, 'all peers to have the last serial').catch((error) => {
    t.fail(`${error}\n${peers.map((p) => p.output().slice(-1500)).join('\n---\n')}`)
  })
  await edit(server, source)
  await until(areEqual, 'all peers to have one more edit')
  const ours = await transferred(server.port, ZONE)
  t.ok(ours.length > source.records, `${ours.length} records`)
  for (const [i, peer] of peers.entries()) {
    t.strictSame(await transferred(peer.port, ZONE), ours, `${PEERS[i]} has what we have`)
  }
  await verify(t, directory, ours)
  const log = server.output()
  const sent = (kind: string): number => log.split(`${kind} of ${ZONE}. `).length - 1
  t.ok(sent('IXFR') >= PEERS.length, `${sent('IXFR')} IXFR, ${sent('AXFR')} AXFR`)
  t.notMatch(log, /\[ERROR\]/)
}

/** Edits the zone, and waits until the server has signed the edit. */
async function edit(server: RunningServer, source: Source): Promise<void> {
  const before = await serialAt(server.port, ZONE)
  putFile(server.directory, ...source.edit())
  await until(async () => (await serialAt(server.port, ZONE)) !== before, 'the edit')
}

async function verify(t: Test, directory: string, lines: readonly string[]): Promise<void> {
  const path = join(directory, `${ZONE}.zone`)
  const isSoa = (line: string): boolean => / SOA /.test(line) && !/ RRSIG /.test(line)
  const sorted = [...lines.filter(isSoa), ...lines.filter((line) => !isSoa(line))]
  writeFileSync(path, `${sorted.join('\n')}\n`)
  const commands = [
    ['dnssec-verify', '-z', '-o', ZONE, path],
    ['ldns-verify-zone', path],
    ['kzonecheck', '-d', 'on', '-o', ZONE, path],
  ] as const
  for (const [command, ...args] of commands) {
    const { code, stdout, stderr } = await run(command, args)
    t.equal(code, 0, `${command}: ${stdout}${stderr}`)
  }
}
