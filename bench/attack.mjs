// A server with zones, forward and cache under a mixed attack: what honest clients lose, and how much memory it takes.
//   npm run build && node bench/attack.mjs [SECONDS] [ATTACK...]
// Attacks (default: all at once): floods of names, of damaged packets and of ECS networks over UDP, forwarded names whose
// upstream is silent or sends long replies, TCP connections that send slowly, never read, or come and go, zone
// transfers that nobody reads, HTTP connections that send slowly. Attackers and honest clients have addresses of their
// own in 127/8. Honest clients: one query over UDP and one over a new TCP connection each 150 ms, /health each 250 ms,
// with 3 s for a reply; they begin a second before the attack, as probes of a running server do. Attackers have the
// lowest priority, because they share the processors of the server. Every ten seconds, and at the end: losses, and the
// memory of the process (RSS).
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ATTACKS } from './attack/attacks.mjs'
import { HonestClients } from './attack/honest.mjs'

const [seconds = '600', ...wanted] = process.argv.slice(2)
const chosen = wanted.length === 0 ? Object.keys(ATTACKS) : wanted
const PORTS = { dns: 15353, health: 18080, upstream: 15354 }
const HOSTS = 20_000
const REPORT_MS = 10_000
const main = fileURLToPath(new URL('../dist/main.js', import.meta.url))

function zone() {
  const lines = [
    '$ORIGIN example.org.',
    '@ 60 SOA ns admin 1 7200 600 86400 60',
    '@ 60 NS ns',
    'ns 60 A 127.0.0.1',
  ]
  for (let i = 0; i < HOSTS; i++) lines.push(`h${i} 60 A 192.0.2.${i % 256}`)
  return `${lines.join('\n')}\n`
}

const corefile = `
.:${PORTS.dns} {
    bind 127.0.0.1
    health 127.0.0.1:${PORTS.health}
    errors
    file db.example.org example.org
    transfer example.org {
        to *
    }
    cache
    forward . 127.0.0.1:${PORTS.upstream}
}
`

const directory = mkdtempSync(join(tmpdir(), 'attack-'))
writeFileSync(join(directory, 'db.example.org'), zone())
writeFileSync(join(directory, 'Corefile'), corefile)
const fileOf = (name) => fileURLToPath(new URL(`./attack/${name}.mjs`, import.meta.url))
const upstream = spawn(process.execPath, [fileOf('upstream'), PORTS.upstream], { stdio: 'inherit' })
const server = spawn(process.execPath, [main, 'serve', '-conf', join(directory, 'Corefile')], {
  cwd: directory,
  stdio: ['ignore', 'ignore', 'ignore'],
})
const honest = new HonestClients(PORTS)
await honest.ready()
const before = rssMegabytes()
honest.start()
await new Promise((resolve) => setTimeout(resolve, 1000))
const attackers = chosen.map((name) => {
  return spawn(
    'nice',
    ['-n', '19', process.execPath, fileOf('attacker'), name, JSON.stringify(PORTS)],
    {
      stdio: 'inherit',
    },
  )
})
let most = 0
const sampler = setInterval(() => (most = Math.max(most, rssMegabytes())), 500)
const startMs = Date.now()
while (Date.now() - startMs < Number(seconds) * 1000 && server.exitCode === null) {
  await new Promise((resolve) => setTimeout(resolve, REPORT_MS))
  console.log(
    `${Math.round((Date.now() - startMs) / 1000)} s: ${honest.print()}; RSS ${rssMegabytes()} MB, most ${most} MB`,
  )
}
clearInterval(sampler)
for (const attacker of attackers) attacker.kill('SIGKILL')
await honest.stop()
console.log(`\nat the start ${before} MB, most ${most} MB; lost: ${honest.print()}`)
if (server.exitCode !== null || server.signalCode !== null)
  console.log(`the server ended: ${server.exitCode} ${server.signalCode}`)
server.kill('SIGKILL')
upstream.kill()
rmSync(directory, { recursive: true })
process.exit()

function rssMegabytes() {
  const status = readFileSync(`/proc/${server.pid}/status`, 'utf8')
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024)
}
