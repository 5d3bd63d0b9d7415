// How long an AXFR of a large zone takes, beside other servers that have the same file. By hand:
//   npm run build && node bench/transfer.mjs [OTHER_ROOT|-] [NAMES] [ROUNDS]
// OTHER_ROOT: another built checkout. Knot and NSD take part if they are installed. The client only counts octets and
// records; each round asks all servers in turn.
import { spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { median } from './median.mjs'

const [other = '-', names = '1000000', rounds = '7'] = process.argv.slice(2)
const NAMES = Number(names)
/** SOA twice, NS, its address. */
const RECORDS = NAMES + 4
const START_MS_MAX = 60_000
const directory = mkdtempSync(join(tmpdir(), 'sextant-transfer-'))
const zone = join(directory, 'zone')
const lines = [
  '$ORIGIN example.org.',
  '$TTL 300',
  '@ SOA ns1 admin 1 3600 600 86400 60',
  '@ NS ns1',
  'ns1 A 192.0.2.1',
]
for (let i = 0; i < NAMES; i++)
  lines.push(`n${i} A 10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`)
writeFileSync(zone, `${lines.join('\n')}\n`)

const write = (name, text) => {
  writeFileSync(join(directory, name), text)
  return join(directory, name)
}

function sextant(root, port) {
  const text = `example.org:${port} {\n bind 127.0.0.1\n file ${zone}\n transfer {\n to *\n }\n}\n`
  return [
    process.execPath,
    join(root, 'dist/main.js'),
    'serve',
    '-quiet',
    '-conf',
    write(`corefile-${port}`, text),
  ]
}

function knot(port) {
  const text = `server:
  rundir: ${directory}
  listen: 127.0.0.1@${port}
database:
  storage: ${directory}
acl:
  - id: all
    address: 127.0.0.1
    action: transfer
zone:
  - domain: example.org
    file: ${zone}
    zonefile-sync: -1
    journal-content: none
    acl: all
`
  return ['knotd', '-c', write('knot.conf', text)]
}

function nsd(port) {
  const text = `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  pidfile: "${join(directory, 'nsd.pid')}"
  xfrdfile: ""
  zonelistfile: "${join(directory, 'nsd.list')}"
  logfile: "${join(directory, 'nsd.log')}"
remote-control:
  control-enable: no
zone:
  name: example.org
  zonefile: ${zone}
  provide-xfr: 127.0.0.0/8 NOKEY
`
  return ['nsd', '-d', '-c', write('nsd.conf', text)]
}

function isInstalled(command) {
  const found = (folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK)
      return true
    } catch {
      return false
    }
  }
  return [...process.env.PATH.split(delimiter), '/usr/sbin'].some(found)
}

const here = fileURLToPath(new URL('..', import.meta.url))
const servers = [{ name: 'this', port: 15470, command: sextant(here, 15470) }]
if (other !== '-')
  servers.push({ name: 'other', port: 15471, command: sextant(resolve(other), 15471) })
if (isInstalled('knotd')) servers.push({ name: 'Knot', port: 15472, command: knot(15472) })
if (isInstalled('nsd')) servers.push({ name: 'NSD', port: 15473, command: nsd(15473) })

const QUERY = Buffer.from(
  '00010000000100000000000007657861' + '6d706c65036f726700' + '00fc0001',
  'hex',
)

/** Milliseconds and octets of one transfer; undefined = it failed. */
function transfer(port) {
  return new Promise((done) => {
    const startMs = performance.now()
    let octets = 0
    let records = 0
    let rest = Buffer.alloc(0)
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(Buffer.concat([Buffer.from([0, QUERY.length]), QUERY]))
    })
    socket.on('data', (chunk) => {
      octets += chunk.length
      const all = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      let at = 0
      while (all.length - at >= 2 && all.length - at - 2 >= all.readUInt16BE(at)) {
        records += all.readUInt16BE(at + 8)
        at += 2 + all.readUInt16BE(at)
      }
      rest = all.subarray(at)
      if (records >= RECORDS) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      done(records === RECORDS ? { ms: performance.now() - startMs, octets } : undefined)
    })
  })
}

const children = servers.map(({ command: [file, ...args] }) =>
  spawn(file, args, {
    stdio: 'ignore',
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` },
  }),
)
process.once('exit', () => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
})
for (const { name, port } of servers) {
  const endMs = performance.now() + START_MS_MAX
  while ((await transfer(port)) === undefined) {
    if (performance.now() > endMs) throw new Error(`${name} does not transfer the zone`)
    await delay(200)
  }
}
const times = servers.map(() => [])
const octets = servers.map(() => 0)
for (let round = 0; round < Number(rounds); round++) {
  for (const [i, { port }] of servers.entries()) {
    const result = await transfer(port)
    if (result === undefined) throw new Error(`${servers[i].name} broke a transfer off`)
    times[i].push(result.ms)
    octets[i] = result.octets
  }
}
for (const [i, { name }] of servers.entries()) {
  const ratios = times[i].map((ms, round) => ms / times[0][round])
  console.log(
    `${name.padEnd(6)} ${median(times[i]).toFixed(0).padStart(6)} ms  ${(octets[i] / 1e6).toFixed(1)} MB  ${median(ratios).toFixed(2)} of this`,
  )
}
process.exit()
