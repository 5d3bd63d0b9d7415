import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ROWS, type Row } from './fail-over-rows.ts'
import {
  DNS_PORT,
  DOWN_S,
  type FailOverSites,
  gatewayOf,
  serverOf,
  UP_S,
  ZONE,
} from './fail-over-sites.ts'
import type { HostProcess } from './host-network.ts'
import { root } from './server.ts'
import { temporaryDirectory } from './temporary-directory.ts'
import { until } from './until.ts'

const TTL_S = 2
const RESOLVER_PORT = 5300
const RESOLVED_PER_S = 500
/** Unbound has most answers in its cache. These queries ask the servers that live. */
const DIRECT_PER_S = 100
/** Names of the host. Unbound asks for each of them once per TTL. */
const NAMES = Array.from({ length: 100 }, (_, i) => (i === 0 ? 'app' : `n${i}.app`))
/** What the record of each site has. */
export const LOADED = { names: NAMES, ttlSeconds: TTL_S }
const CLIENT = join(root, 'test/support/load-client.mjs')
/** Of load before the fault, and after the last time at which a dead address is allowed. */
const BEFORE_S = 1
const AFTER_S = 1
/** Added to the bound of the recovery, because several networks and other tests share the processors. */
const BUSY_S = 20

const both = ROWS.find(({ fault }) => fault === 'both die')!

/** The rows of the partition table, and what only a resolver notices. */
export const LOADED_ROWS: readonly Row[] = [
  ...ROWS,
  {
    ...both,
    fault: 'its host is gone: a resolver gets no ICMP error',
    begin: ({ sites }, last) => sites[last]!.disconnect(),
    end: ({ sites }, last) => sites[last]!.reconnect(),
  },
]

/** What `load-client.mjs` prints of a server. */
interface Result {
  readonly sent: number
  readonly repeated: number
  readonly failed: number
  readonly failures: readonly string[]
  readonly lastMs: Readonly<Record<string, number>>
}

/** A server under load. */
interface Asked {
  readonly what: string
  readonly address: string
  readonly perS: number
  readonly attempts: number
  /** After this, it gives no address that is not in `served`. */
  readonly limitS: number
  /** Sites whose addresses it still gives at the end, and those whose addresses it may give. */
  readonly served: readonly number[]
  readonly allowed: readonly number[]
}

/** A resolver that asks these sites for the zone, and has no other zone. */
function unboundConf(sites: readonly number[]): string {
  return `server:
  interface: 127.0.0.1@${RESOLVER_PORT}
  username: ""
  chroot: ""
  pidfile: ""
  use-syslog: no
  do-daemonize: no
  module-config: "iterator"
  root-hints: ""
stub-zone:
  name: "${ZONE}."
${sites.map((site) => `  stub-addr: ${serverOf(site)}@${DNS_PORT}`).join('\n')}
remote-control:
  control-enable: no
`
}

/** Servers that live: the v2 sites without a fault of their DNS, and a resolver that asks all v2 sites. */
function askedOf(of: FailOverSites, row: Row): readonly Asked[] {
  const last = of.sites.length - 1
  const all = of.sites.map(({ number }) => number)
  const served = last === 1 ? row.two : row.three
  const live = of.sites.filter(({ number, generation }) => {
    return generation === 'v2' && !(row.endsDns === true && number === last)
  })
  const direct = live.map(({ number }): Asked => {
    const own = served[number] ?? all
    return {
      what: `site${number}`,
      address: `${serverOf(number)}:${DNS_PORT}`,
      perS: DIRECT_PER_S,
      attempts: 1,
      limitS: DOWN_S,
      served: own,
      allowed: own,
    }
  })
  return [
    {
      what: 'Unbound',
      address: `127.0.0.1:${RESOLVER_PORT}`,
      perS: RESOLVED_PER_S,
      // While Unbound 1.17.1 still retries a dead nameserver, answers take up to 2.1 s (p99 1.2 s). It drops replies that
      // are older than its `discard-timeout`, 1.9 s: 2 of 12021. A client that repeats its query gets all of them.
      attempts: 2,
      limitS: DOWN_S + TTL_S,
      served: all.filter((site) => direct.every(({ served }) => served.includes(site))),
      allowed: all.filter((site) => direct.some(({ allowed }) => allowed.includes(site))),
    },
    ...direct,
  ]
}

async function startUnbound(t: Test, { clients, sites }: FailOverSites): Promise<HostProcess> {
  const conf = join(temporaryDirectory(t), 'unbound.conf')
  const asked = sites.filter(({ generation }) => generation === 'v2')
  writeFileSync(conf, unboundConf(asked.map(({ number }) => number)))
  const unbound = clients.start(['unbound', '-d', '-c', conf])
  const digs = ['@127.0.0.1', '-p', String(RESOLVER_PORT), `app.${ZONE}`, '+short', '+time=1']
  const isResolved = async () => /^10\./m.test(await clients.run('dig', ...digs))
  await until(isResolved, 'the resolver')
  return unbound
}

/** Has clients ask 500 times a second through Unbound, and each server that lives, while the fault begins and until its address must be gone, then ends the fault. */
export async function runLoadedRow(t: Test, of: FailOverSites, row: Row): Promise<void> {
  const last = of.sites.length - 1
  const about = `${of.sites.map(({ generation }) => generation)}, ${row.fault}`
  const asked = askedOf(of, row)
  const unbound = await startUnbound(t, of)
  const names = NAMES.map((name) => `${name}.${ZONE}`).join()
  const servers = asked.map(({ address, perS, attempts }) => [address, perS, attempts].join(':'))
  const load = of.clients.start([process.execPath, CLIENT, names, ...servers])
  await until(() => /ready/.test(load.output()), 'the load')
  const seconds = (since: number) => (Date.now() - since) / 1000
  const startMs = Date.now()
  await until(() => seconds(startMs) > BEFORE_S, 'load before the fault')
  await row.begin(of, last)
  const faultMs = Date.now()
  await until(() => seconds(faultMs) > DOWN_S + TTL_S + AFTER_S, 'load after the fault')
  await load.end('SIGTERM')
  await unbound.end('SIGTERM')

  const results = JSON.parse(load.output().replace('ready', '')) as Result[]
  for (const [i, { what, limitS, served, allowed }] of asked.entries()) {
    const { sent, repeated, failed, failures, lastMs } = results[i]!
    const lastS = (site: number) => ((lastMs[gatewayOf(site)] ?? 0) - faultMs) / 1000
    const dead = of.sites.map(({ number }) => number).filter((site) => !allowed.includes(site))
    const deadS = Math.max(0, ...dead.map(lastS))
    const isGone = deadS <= limitS
    t.strictSame(failures, [], `${about}, ${what}: ${failed} of ${sent} queries failed`)
    t.ok(isGone, `${about}, ${what}: dead address after ${deadS} s${isGone ? '' : of.output}`)
    for (const site of served)
      t.ok(lastS(site) > DOWN_S, `${about}, ${what} still gives that of site${site}`)
    const gone = dead.length === 0 ? 'no address is dead' : `${deadS.toFixed(1)} s of ${limitS}`
    t.comment(`${about}, ${what}: ${gone}; ${sent} queries, ${repeated} repeated`)
  }
  await row.end(of, last)
  const endMs = Date.now()
  await of.untilWhole()
  const wholeS = seconds(endMs)
  t.ok(wholeS <= UP_S + BUSY_S, `${about}: all addresses after ${wholeS} s of ${UP_S}`)
}
