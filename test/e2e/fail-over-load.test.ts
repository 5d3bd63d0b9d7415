import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import {
  DNS_PORT,
  DOWN_S,
  FailOverSites,
  gatewayOf,
  serverOf,
  ZONE,
} from '../support/fail-over-sites.ts'
import { needs, needsRoot } from '../support/peer.ts'
import { root } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'

const TTL_S = 5
const RESOLVER_PORT = 5300
const RESOLVED_PER_S = 500
/** Unbound has most answers in its cache. These queries ask the servers that live. */
const DIRECT_PER_S = 100
/** Names of the host. Unbound asks for each of them once per TTL. */
const NAMES = Array.from({ length: 100 }, (_, i) => (i === 0 ? 'app' : `n${i}.app`))
const CLIENT = join(root, 'test/support/load-client.mjs')
/** Of load before the fault, and after the last time at which a dead address is allowed. */
const BEFORE_S = 3
const AFTER_S = 3

/** What `load-client.mjs` prints of a server. */
interface Result {
  readonly sent: number
  readonly failed: number
  readonly failures: readonly string[]
  readonly lastMs: Readonly<Record<string, number>>
}

/** A resolver that asks all sites for the zone, and has no other zone. */
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

t.test(
  'when a site dies, no query to a live server fails, and its address is gone within the bound',
  { ...needsRoot(), ...needs('dig', 'nft', 'unbound') },
  async (t) => {
    const generations = ['v2', 'v2', 'v2'] as const
    const of = await FailOverSites.start(t, { generations, names: NAMES, ttlSeconds: TTL_S })
    const conf = join(temporaryDirectory(t), 'unbound.conf')
    writeFileSync(conf, unboundConf([0, 1, 2]))
    const unbound = of.clients.start(['unbound', '-d', '-c', conf])
    const names = NAMES.map((name) => `${name}.${ZONE}`).join()
    const live = [0, 1]
    const servers = [
      `127.0.0.1:${RESOLVER_PORT}:${RESOLVED_PER_S}`,
      ...live.map((site) => `${serverOf(site)}:${DNS_PORT}:${DIRECT_PER_S}`),
    ]
    const digs = ['@127.0.0.1', '-p', String(RESOLVER_PORT), `app.${ZONE}`, '+short', '+time=1']
    const isResolved = async () => /^10\./m.test(await of.clients.run('dig', ...digs))
    await until(isResolved, `the resolver\n${unbound.output()}`)

    const load = of.clients.start([process.execPath, CLIENT, names, ...servers])
    await until(() => /ready/.test(load.output()), 'the load')
    const seconds = (since: number) => (Date.now() - since) / 1000
    const startMs = Date.now()
    await until(() => seconds(startMs) > BEFORE_S, 'load before the fault')
    const faultMs = Date.now()
    await of.sites[2]!.disconnect()
    const limitS = DOWN_S + TTL_S
    await until(() => seconds(faultMs) > limitS + AFTER_S, 'load after the fault')
    await load.end('SIGTERM')

    const [resolved, ...direct] = JSON.parse(load.output().replace('ready', '')) as Result[]
    const about = `${of.output}\n${unbound.output()}`
    const lastS = (result: Result, site: number) =>
      ((result.lastMs[gatewayOf(site)] ?? 0) - faultMs) / 1000
    for (const [what, result, allowedS] of [
      ['Unbound', resolved!, limitS] as const,
      ...direct.map((result, i) => [`site${live[i]}`, result, DOWN_S] as const),
    ]) {
      const { sent, failures, failed } = result
      // Unbound waits for the dead nameserver before it asks another: on a busy machine, some queries then end too late.
      if (what === 'Unbound')
        t.ok(failed < sent / 20, `Unbound: ${failed} of ${sent} queries failed`)
      else t.strictSame(failures, [], `${what}: ${failed} of ${sent} queries failed`)
      const deadS = lastS(result, 2)
      const isGone = deadS <= allowedS
      t.ok(
        isGone,
        `${what}: no dead address after ${allowedS} s${isGone ? '' : `: ${deadS} s\n${about}`}`,
      )
      for (const site of live)
        t.ok(lastS(result, site) > limitS, `${what} gives that of site${site}`)
      t.comment(`${what}: ${sent} queries, last dead address ${deadS.toFixed(1)} s of ${allowedS}`)
    }
  },
)
