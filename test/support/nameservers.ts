import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { UdpClient } from './client.ts'
import { run } from './peer.ts'
import { freePort } from './server.ts'
import { until } from './until.ts'
import { readMessage } from './wire.ts'

export type PeerName = 'named' | 'knotd' | 'nsd'

/** The key of signed tests. */
export const KEY = {
  name: 'transfer.z.example.',
  secret: 'NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=',
}

/** Another server's address, as it stands in configurations here: always 127.0.0.1. */
export interface PeerOptions {
  /** Zones without the final dot. */
  readonly zone: string
  /** Our port, which it transfers from or notifies. */
  readonly port: number
  readonly signed: boolean
  /** Master file of a zone that it has of its own; undefined = it follows ours. */
  readonly zoneText?: string
  /** Knot signs its own zone, with keys that it makes. */
  readonly dnssec?: Denial | 'shared'
  /** BIND listens on this address too. */
  readonly host?: string
}

/** How a signed zone proves absence. */
export type Denial = 'nsec' | 'nsec3' | 'opt-out'

/** Lines of Knot's policy. */
export const KNOT_POLICY: Readonly<Record<Denial | 'shared', string>> = {
  // Another provider signs the zone too, and updates bring its keys (RFC 8901).
  shared: `    nsec3: off
    single-type-signing: on
    dnskey-management: incremental
    dnskey-ttl: 1
    delete-delay: 1h
    cds-cdnskey-publish: none`,
  nsec: '    nsec3: off',
  nsec3: '    nsec3: on\n    nsec3-iterations: 3',
  'opt-out': '    nsec3: on\n    nsec3-opt-out: on\n    nsec3-salt-length: 0',
}

export interface RunningPeer {
  readonly port: number
  readonly directory: string
  output(): string
  signal(name: NodeJS.Signals): void
}

const COMMANDS: Readonly<Record<PeerName, readonly string[]>> = {
  named: ['named', '-g', '-n', '1', '-c', 'conf'],
  knotd: ['knotd', '-c', 'conf'],
  nsd: ['nsd', '-d', '-c', 'conf'],
}

/** Starts BIND, Knot or NSD on a free port; it is gone when the test ends. */
export async function startPeer(
  t: Test,
  name: PeerName,
  options: PeerOptions,
): Promise<RunningPeer> {
  const port = await freePort()
  // Not t.testdir: that of the server under test would go.
  const directory = mkdtempSync(join(tmpdir(), `sextant-${name}-`))
  t.teardown(() => rmSync(directory, { recursive: true, force: true, maxRetries: 5 }))
  if (options.zoneText !== undefined) writeFileSync(join(directory, 'zone'), options.zoneText)
  writeFileSync(join(directory, 'conf'), CONFIGS[name](options, port, directory))
  const [command, ...args] = COMMANDS[name]
  const child = spawn(command!, args, { cwd: directory, stdio: ['ignore', 'pipe', 'pipe'] })
  let printed = ''
  child.stdout.on('data', (chunk) => (printed += String(chunk)))
  child.stderr.on('data', (chunk) => (printed += String(chunk)))
  const exit = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), 5000)
    await exit
    clearTimeout(timer)
  })
  const answers = async (): Promise<boolean> => {
    if (child.exitCode !== null) throw new Error(`${name} did not start:\n${printed}`)
    return (await digAt(port, ['+time=1', '+tries=1', 'version.bind.', 'TXT', 'CH'])).includes(
      ';; Got answer',
    )
  }
  await until(answers, `${name} to answer`)
  return { port, directory, output: () => printed, signal: (signal) => child.kill(signal) }
}

export async function digAt(port: number, args: readonly string[]): Promise<string> {
  return (await run('dig', ['@127.0.0.1', '-p', String(port), ...args])).stdout
}

export const digKey = (): string[] => ['-y', `hmac-sha256:${KEY.name}:${KEY.secret}`]

/** Every record of a zone as a server transfers it, sorted; the SOA once. */
export async function transferred(port: number, zone: string, signed = false): Promise<string[]> {
  const key = signed ? digKey() : []
  const text = await digAt(port, [...key, '+nocmd', '+noall', '+answer', zone, 'AXFR'])
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
  return [...new Set(lines.map((line) => line.trim().replace(/\s+/g, ' ')))]
    .filter((line) => !line.includes(' ANY TSIG '))
    .sort()
}

/** The serial of a zone; NaN if the answer has no SOA record. Without dig: tests ask again and again until it changes. */
export async function serialAt(port: number, zone: string): Promise<number> {
  const client = await UdpClient.connect(port)
  try {
    const [soa] = readMessage(await client.ask({ name: zone, type: 'SOA' })).answer
    // The serial and four timers are the last 20 octets (RFC 1035 section 3.3.13).
    return soa === undefined
      ? Number.NaN
      : Buffer.from(soa.rdata).readUInt32BE(soa.rdata.length - 20)
  } finally {
    client.close()
  }
}

const CONFIGS: Readonly<
  Record<PeerName, (options: PeerOptions, port: number, directory: string) => string>
> = {
  named: ({ zone, port, signed, zoneText, host }, own, directory) => `
options {
  directory "${directory}"; pid-file "${directory}/pid"; session-keyfile "${directory}/session";
  listen-on port ${own} { 127.0.0.1; ${host === undefined ? '' : `${host};`} }; listen-on-v6 { none; };
  recursion no; dnssec-validation no; allow-transfer { any; }; notify no; minimal-responses no;
  serial-query-rate 1000; startup-notify-rate 1000; notify-rate 1000; notify-delay 0; empty-zones-enable no;
};
controls { };
key "${KEY.name}" { algorithm hmac-sha256; secret "${KEY.secret}"; };
zone "${zone}" {
${
  zoneText === undefined
    ? `type secondary; file "copy"; primaries { 127.0.0.1 port ${port}${signed ? ` key "${KEY.name}"` : ''}; };
  min-refresh-time 1; max-refresh-time 5; min-retry-time 1; max-retry-time 2; request-ixfr yes;`
    : `type primary; file "zone"; notify explicit; also-notify { 127.0.0.1 port ${port}${signed ? ` key "${KEY.name}"` : ''}; };
  allow-update { 127.0.0.1; }; ${signed ? `allow-transfer { key "${KEY.name}"; };` : ''}`
}
};
`,
  knotd: ({ zone, port, signed, zoneText, dnssec }, own, directory) => `
server:
  rundir: "${directory}"
  listen: 127.0.0.1@${own}
database:
  storage: "${directory}"
log:
  - target: stdout
    any: info
key:
  - id: ${KEY.name}
    algorithm: hmac-sha256
    secret: ${KEY.secret}
remote:
  - id: us
    address: 127.0.0.1@${port}
${signed ? `    key: ${KEY.name}` : ''}
acl:
  - id: us
    address: 127.0.0.1
    action: [${zoneText === undefined ? 'notify' : 'transfer, update'}]
${signed ? `    key: ${KEY.name}` : ''}
  - id: test
    address: 127.0.0.1
    action: ${zoneText === undefined || !signed ? 'transfer' : 'update'}
policy:
  - id: ours
${KNOT_POLICY[dnssec ?? 'nsec']}
zone:
  - domain: ${zone}
    storage: "${directory}"
${dnssec === undefined ? '' : '    dnssec-signing: on\n    dnssec-policy: ours'}
    acl: [us, test]
${zoneText === undefined ? '    master: us\n    file: copy' : '    file: zone\n    notify: us'}
`,
  nsd: ({ zone, port, signed, zoneText }, own, directory) => `
server:
  ip-address: 127.0.0.1@${own}
  username: ""
  chroot: ""
  database: ""
  server-count: 1
  zonesdir: "${directory}"
  zonelistfile: "${directory}/zone.list"
  xfrdfile: "${directory}/xfrd.state"
  xfrdir: "${directory}"
  pidfile: ""
  logfile: ""
  verbosity: 2
  xfrd-reload-timeout: 0
remote-control:
  control-enable: no
key:
  name: "${KEY.name}"
  algorithm: hmac-sha256
  secret: "${KEY.secret}"
zone:
  name: "${zone}"
  zonefile: "${zoneText === undefined ? 'copy' : 'zone'}"
  provide-xfr: 127.0.0.1 ${signed && zoneText !== undefined ? KEY.name : 'NOKEY'}
${
  zoneText === undefined
    ? `  request-xfr: 127.0.0.1@${port} ${signed ? KEY.name : 'NOKEY'}
  allow-notify: 127.0.0.1 ${signed ? KEY.name : 'NOKEY'}
  min-refresh-time: 1
  max-refresh-time: 5
  min-retry-time: 1`
    : `  notify: 127.0.0.1@${port} ${signed ? KEY.name : 'NOKEY'}
  store-ixfr: yes
  create-ixfr: yes`
}
`,
}
