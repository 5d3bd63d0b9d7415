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

/** Steered sets of addresses and of names, with codes, weights, wildcards and failover, which change with each edit. */
function recordSource(): Source {
  let edits = 0
  return {
    directive: 'kuadrant {\n  manifests zones\n  nameserver ns1.z.example 192.0.2.53\n }',
    records: 60,
    edit: () => {
      edits++
      const lines = Array.from({ length: 20 }, (_, i) => endpoints(i, edits)).join('')
      return ['zones/app.yaml', `${HEAD}${lines}`]
    },
  }
}

const HEAD = `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: { name: app }
spec:
  rootHost: app.${ZONE}
  endpoints:
`

function endpoints(i: number, edit: number): string {
  const name = `n${i}.app.${ZONE}`
  // The set of one name changes with each edit, and returns later.
  const isEdited = edit % 20 === i
  if (isEdited && edit % 3 === 0) return ''
  const weight = isEdited ? 1 + (edit % 200) : 100
  const last = isEdited ? edit % 250 : i
  const one = (id: string, type: string, target: string, settings: string): string =>
    `  - {dnsName: "${i % 4 === 1 ? `*.${name}` : name}", recordType: ${type}, setIdentifier: ${id}, targets: ["${target}"], providerSpecific: [${settings}]}\n`
  const heavy = `{name: weight, value: "${weight}"}`
  const light = '{name: weight, value: "50"}'
  if (i % 4 === 0) {
    return (
      one('a', 'CNAME', `a${last}.app.${ZONE}`, heavy) + one('b', 'CNAME', `b.app.${ZONE}`, light)
    )
  }
  const european = '{name: geo-code, value: "GEO-EU"}'
  const usual = '{name: geo-code, value: "*"}'
  return (
    one('a', 'A', `192.0.2.${last}`, `${heavy}, ${european}`) +
    one('b', 'A', `198.51.100.${i}`, `${light}, ${european}`) +
    one('c', 'A', `203.0.113.${last}`, usual)
  )
}

const tools = needs('dig', 'dnssec-verify', 'ldns-verify-zone', 'kzonecheck', ...PEERS)
for (const [what, source] of [
  ['a file', fileSource()],
  ['steered records', recordSource()],
] as const) {
  t.test(`BIND, Knot and NSD follow ${what} that we sign, through ${EDITS} edits`, tools, (t) =>
    follow(t, source),
  )
}

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
