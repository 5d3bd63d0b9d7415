// Sites on network namespaces of their own, and a namespace whose clients reach all of them in any fault.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))
const GATEWAY = fileURLToPath(new URL('gateway.mjs', import.meta.url))
const CLIENT = fileURLToPath(new URL('client.mjs', import.meta.url))
const DNS_PORT = 1053
const GATEWAY_PORT = 8080
const ZONE = 'k.example.com'
const HOST = `app.${ZONE}`
const [INTERVAL_S, FAILURES, SUCCESSES] = [1, 1, 1]
/** Seconds after which clients get no failed address, and get a recovered one again (docs/explanation/health.md). */
export const BOUNDS_S = {
  downS: (FAILURES + 2) * INTERVAL_S + 10,
  upS: (SUCCESSES + 1) * INTERVAL_S + 10,
}

const serverOf = (site) => `10.9.0.${site + 1}`
const gatewayOf = (site) => `10.9.1.${site + 1}`
const siteOf = (address) => Number(address.split('.')[3]) - 1
const run = (...words) => execFileSync('ip', words, { stdio: 'pipe' })

const spaces = []
process.on('exit', () => {
  for (const space of spaces) {
    const pids = run('netns', 'pids', space).toString().split('\n').filter(Boolean)
    for (const pid of pids) process.kill(Number(pid), 'SIGKILL')
    run('netns', 'del', space)
  }
})
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))

function addSpace(name) {
  run('netns', 'add', name)
  spaces.push(name)
  run('-n', name, 'link', 'set', 'lo', 'up')
}

export class SiteNetwork {
  #directory
  #prefix = `sxf${process.pid}-${spaces.length}`
  #servers = new Map()
  #gateways = new Map()
  #printed = []
  /** By site: when it last gave each address, its last answer, and since when it gives that. */
  #seen = new Map()
  #kind

  /** `kind`: of each site, v2, or v1 for one that has no peers and exports only v1. */
  static async start(directory, kind) {
    const network = new SiteNetwork()
    network.#directory = directory
    network.#kind = kind
    network.numbers = [...kind.keys()]
    /** Sites that give the addresses of all. */
    network.merging = network.numbers.filter((site) => kind[site] === 'v2')
    addSpace(network.#space('hub'))
    run('-n', network.#space('hub'), 'link', 'add', 'br0', 'type', 'bridge', 'forward_delay', '0')
    run('-n', network.#space('hub'), 'link', 'set', 'br0', 'up')
    for (const site of network.numbers) {
      network.#addHost(site, [serverOf(site), gatewayOf(site)])
      network.#layFiles(site)
      network.startGateway(site)
      network.startServer(site)
    }
    network.#addHost('clients', ['10.9.9.1'])
    const servers = network.numbers.map(serverOf)
    const client = network.#spawn('clients', [CLIENT, HOST, DNS_PORT, ...servers])
    createInterface({ input: client.stdout }).on('line', (line) => network.#note(line))
    return network
  }

  output() {
    return this.#printed.join('')
  }

  /** True if the last answer since then has the addresses of exactly these sites. */
  gives(site, sites, sinceMs) {
    const seen = this.#seen.get(site)
    return seen !== undefined && seen.atMs > sinceMs && seen.text === sites.map(gatewayOf).join()
  }

  /** When it began to give what it gives, at the earliest `sinceMs`. */
  firstMs(site, sinceMs) {
    return Math.max(sinceMs, this.#seen.get(site).firstMs)
  }

  /** When it last answered; 0 = never. */
  answeredMs(site) {
    return this.#seen.get(site)?.atMs ?? 0
  }

  /** When it last gave the address of a site; 0 = never. */
  lastMs(site, other) {
    return this.#seen.get(site)?.lastMs.get(other) ?? 0
  }

  /** When it last gave fewer addresses than those of all; 0 = never. */
  lackedMs(site) {
    return this.#seen.get(site)?.lackedMs ?? 0
  }

  startServer(site) {
    this.#servers.set(site, this.#spawn(site, [MAIN, 'serve', '-conf', 'Corefile']))
  }

  startGateway(site) {
    this.#gateways.set(site, this.#spawn(site, [GATEWAY, gatewayOf(site), GATEWAY_PORT]))
  }

  async killServer(site) {
    await end(this.#servers.get(site))
  }

  async killGateway(site) {
    await end(this.#gateways.get(site))
  }

  /** Drops all packets between a site and others. */
  cut(site, others) {
    const list = `{ ${others.flatMap((other) => [serverOf(other), gatewayOf(other)]).join(', ')} }`
    this.#filter(site, [
      `chain in { type filter hook input priority 0; ip saddr ${list} drop; }`,
      `chain out { type filter hook output priority 0; ip daddr ${list} drop; }`,
    ])
  }

  /** Drops the queries and probes that a site gets from another one. */
  refuse(site, other) {
    const from = `ip saddr ${serverOf(other)}`
    const ports = `{ ${DNS_PORT}, ${GATEWAY_PORT} }`
    this.#filter(site, [
      `chain in { type filter hook input priority 0; ${from} udp dport ${DNS_PORT} drop; ${from} tcp dport ${ports} drop; }`,
    ])
  }

  hideGateway(site) {
    this.#filter(site, [
      `chain in { type filter hook input priority 0; iifname eth0 tcp dport ${GATEWAY_PORT} drop; }`,
    ])
  }

  heal(site) {
    run('netns', 'exec', this.#space(site), 'nft', 'flush ruleset')
  }

  #filter(site, chains) {
    const table = `table inet cut {\n${chains.join('\n')}\n}`
    run('netns', 'exec', this.#space(site), 'nft', table)
  }

  #space(host) {
    return `${this.#prefix}-${host}`
  }

  #addHost(host, addresses) {
    const [own, hub] = [this.#space(host), this.#space('hub')]
    addSpace(own)
    const peer = ['peer', 'name', `to-${host}`, 'netns', hub]
    run('-n', own, 'link', 'add', 'eth0', 'type', 'veth', ...peer)
    run('-n', hub, 'link', 'set', `to-${host}`, 'master', 'br0', 'up')
    for (const address of addresses)
      run('-n', own, 'address', 'add', `${address}/16`, 'dev', 'eth0')
    run('-n', own, 'link', 'set', 'eth0', 'up')
  }

  #layFiles(site) {
    const directory = join(this.#directory, String(site))
    mkdirSync(join(directory, 'zones'), { recursive: true })
    writeFileSync(join(directory, 'Corefile'), corefileOf(site, this.#kind))
    writeFileSync(join(directory, 'zones/app.yaml'), recordOf(site))
  }

  #spawn(host, args) {
    const words = ['netns', 'exec', this.#space(host), process.execPath, ...args.map(String)]
    const cwd = host === 'clients' ? this.#directory : join(this.#directory, String(host))
    const child = spawn('ip', words, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    const keep = (chunk) => this.#printed.push(`${host}: ${chunk}`)
    child.stderr.on('data', keep)
    if (host !== 'clients') child.stdout.on('data', keep)
    return child
  }

  /** `line`: milliseconds, address of the server, addresses of the answer. */
  #note(line) {
    const [ms, server, ...addresses] = line.split(' ')
    const atMs = Number(ms)
    const [site, text] = [siteOf(server), addresses.join()]
    const before = this.#seen.get(site)
    const seen = before ?? { lastMs: new Map() }
    // A pause of the answers ends what a server gave.
    const isSame = seen.text === text && atMs - seen.atMs < 1000
    Object.assign(seen, { atMs, text, firstMs: isSame ? seen.firstMs : atMs })
    for (const address of addresses) seen.lastMs.set(siteOf(address), atMs)
    if (addresses.length < this.numbers.length) seen.lackedMs = atMs
    if (before === undefined) this.#seen.set(site, seen)
  }
}

async function end(child) {
  const exit = new Promise((resolve) => child.once('close', resolve))
  child.kill('SIGKILL')
  await exit
}

function corefileOf(site, kind) {
  const isOld = kind[site] === 'v1'
  const others = [...kind.keys()].filter((other) => other !== site)
  const peers = others.map((other) => `${serverOf(other)}:${DNS_PORT}`).join(' ')
  const name = `site site${site}`
  return `kdrnt:${DNS_PORT} {
    ${isOld ? '' : 'transfer {\n        to *\n    }'}
    kuadrant {
        manifests zones
        ${isOld ? '' : name}
    }
}
${ZONE}:${DNS_PORT} {
    kuadrant {
        manifests zones
        ${isOld ? '' : `${name}\n        peer ${peers}\n        probe-allow 10.9.0.0/16`}
    }
}
`
}

function recordOf(site) {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: app}
spec:
  rootHost: ${HOST}
  healthCheck: {protocol: HTTP, port: ${GATEWAY_PORT}, path: /, interval: ${INTERVAL_S}s, failureThreshold: ${FAILURES}, successThreshold: ${SUCCESSES}}
  endpoints:
  - {dnsName: ${HOST}, recordType: A, recordTTL: 5, targets: [${gatewayOf(site)}]}
`
}
