import t from 'tap'
import { digAt, serialAt, startPeer, transferred } from '../support/nameservers.ts'
import { needs } from '../support/peer.ts'
import { freePort, putFile, type RunningServer, startServer } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const ZONE = 'k.example.com'
const EDITS = 20

/** A steered set of addresses, one of names, and one that is plain. */
function manifest(last: number): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata:
  name: app
spec:
  rootHost: app.${ZONE}
  endpoints:
  - dnsName: app.${ZONE}
    recordType: A
    setIdentifier: one
    targets: [192.0.2.${last}]
    providerSpecific: [{ name: weight, value: "200" }]
  - dnsName: app.${ZONE}
    recordType: A
    setIdentifier: two
    targets: [198.51.100.1]
    providerSpecific: [{ name: weight, value: "100" }]
  - dnsName: lb.app.${ZONE}
    recordType: CNAME
    setIdentifier: one
    targets: [one.app.${ZONE}]
    providerSpecific: [{ name: weight, value: "1" }]
  - dnsName: lb.app.${ZONE}
    recordType: CNAME
    setIdentifier: two
    targets: [two.app.${ZONE}]
    providerSpecific: [{ name: weight, value: "1" }]
  - dnsName: n${last % 3}.app.${ZONE}
    recordType: TXT
    targets: ['"version ${last}"']
`
}

const corefileTo = (to: string): string => `${ZONE}:{PORT} {
    bind 127.0.0.1
    errors
    transfer {
        to ${to}
    }
    kuadrant {
        manifests zones
    }
}
`

/** The zone as it is first. Records that stay make it larger than what changes. */
function firstFiles(): Readonly<Record<string, string>> {
  const others = Array.from({ length: 80 }, (_, i) => {
    return `  - {dnsName: x${i}.fill.${ZONE}, recordType: A, targets: [203.0.113.${i}, 203.0.113.200]}\n`
  })
  const head = 'apiVersion: kuadrant.io/v1alpha1\nkind: DNSRecord\nmetadata: {name: fill}\n'
  const fill = `${head}spec:\n  rootHost: fill.${ZONE}\n  endpoints:\n${others.join('')}`
  return { 'zones/app.yaml': manifest(1), 'zones/fill.yaml': fill }
}

/** Edits the zone over and over, each time once the edit before is served. */
async function editThrough(server: RunningServer): Promise<void> {
  for (let i = 2; i <= EDITS; i++) {
    const before = await serialAt(server.port, ZONE)
    putFile(server.directory, 'zones/app.yaml', manifest(i))
    await until(async () => (await serialAt(server.port, ZONE)) !== before, `edit ${i}`)
  }
}

/** The records between the first and the last SOA of an IXFR, as additions (+) and removals (-). */
function changesOf(text: string): { line: string; isAdded: boolean }[] {
  const lines = text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith(';'))
    .map((line) => line.trim().replace(/\s+/g, ' '))
  let isAdded = true
  const changes: { line: string; isAdded: boolean }[] = []
  for (const line of lines.slice(1, -1)) {
    if (line.includes(' SOA ')) isAdded = !isAdded
    else changes.push({ line, isAdded })
  }
  return changes
}

t.test(
  'zones of DNSRecords go out with all records, and as what changed',
  needs('dig'),
  async (t) => {
    const corefile = corefileTo('127.0.0.1')
    const server = await startServer(t, { corefile, files: firstFiles() })
    const first = await transferred(server.port, ZONE)
    const at = (name: string) => first.filter((line) => line.startsWith(`${name}.${ZONE}.`))
    t.equal(at('app').length, 2, 'a steered set whole')
    t.equal(at('lb.app').length, 1, 'but one CNAME')
    const oldest = await serialAt(server.port, ZONE)
    await editThrough(server)
    const last = await transferred(server.port, ZONE)
    const ixfr = await digAt(server.port, ['+nocmd', '+noall', '+answer', `ixfr=${oldest}`, ZONE])
    const content = new Set(first.filter((line) => !line.includes(' SOA ')))
    for (const { line, isAdded } of changesOf(ixfr)) {
      if (isAdded) content.add(line)
      else t.ok(content.delete(line), `${line} was there`)
    }
    t.strictSame(
      [...content].sort(),
      last.filter((line) => !line.includes(' SOA ')),
    )
    await server.prints(new RegExp(`IXFR of ${ZONE}\\. \\d+ to 127\\.0\\.0\\.1: `))
  },
)

t.test('NSD follows a zone of DNSRecords through its edits', needs('dig', 'nsd'), async (t) => {
  const port = await freePort()
  const peer = await startPeer(t, 'nsd', { zone: ZONE, port, signed: false })
  const beside = { port, directory: temporaryDirectory(t) }
  const corefile = corefileTo(`127.0.0.1:${peer.port}`)
  const server = await startServer(t, { corefile, files: firstFiles(), beside })
  const haveSame = async (): Promise<boolean> => {
    return (await serialAt(peer.port, ZONE)) === (await serialAt(server.port, ZONE))
  }
  await until(haveSame, 'NSD to have the zone')
  const first = await transferred(peer.port, ZONE)
  await editThrough(server)
  await until(haveSame, 'NSD to have the last serial')
  const ours = await transferred(server.port, ZONE)
  t.ok(ours.length > 80, `${ours.length} records`)
  t.notSame(ours, first)
  t.strictSame(await transferred(peer.port, ZONE), ours, 'NSD has what we have')
  await server.prints(new RegExp(`AXFR of ${ZONE}\\. `))
  // By what changed.
  await server.prints(new RegExp(`IXFR of ${ZONE}\\. `))
})
