import { Resolver } from 'node:dns/promises'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { CLUSTER_TEST_MS } from '../support/cluster.ts'
import { needsCluster } from '../support/cluster-binary.ts'
import { type RunningServer, startServer } from '../support/server.ts'
import { until } from '../support/until.ts'
import { address, DelegationSite } from './delegation-site.ts'

const ZONE = 'k.example.com'
/** Long: other tests run at the same time. */
const SEEN_MS = 120_000
/** The last that the definition lets be probed. */
const PORT_MAX = 49_151
/** Of one client, which draws the same endpoint each time if the host is sticky. By chance once in a million. */
const DRAWS = 20
/** Without a write for so long, operators have settled: a late probe or status is written by then. */
const QUIET_MS = 5000
const ONE = '127.0.0.2'
const TWO = '127.0.0.3'

/** Gateways on one port of several addresses, which can be stopped. */
class Gateways {
  readonly port: number
  readonly #servers = new Map<string, Server>()

  private constructor(first: string, server: Server) {
    this.port = (server.address() as AddressInfo).port
    this.#servers.set(first, server)
  }

  static async start(
    t: Test,
    [first, ...others]: readonly [string, ...string[]],
  ): Promise<Gateways> {
    for (;;) {
      const server = createServer((_, response) => response.end()).listen(0, first)
      await once(server, 'listening')
      if ((server.address() as AddressInfo).port > PORT_MAX) {
        server.close()
        continue
      }
      const gateways = new Gateways(first, server)
      t.teardown(() => Promise.all([...gateways.#servers.keys()].map((one) => gateways.stop(one))))
      for (const other of others) await gateways.run(other)
      return gateways
    }
  }

  async run(address: string): Promise<void> {
    const server = createServer((_, response) => response.end()).listen(this.port, address)
    await once(server, 'listening')
    this.#servers.set(address, server)
  }

  async stop(address: string): Promise<void> {
    const server = this.#servers.get(address)
    this.#servers.delete(address)
    server?.closeAllConnections()
    if (server !== undefined) await new Promise((done) => server.close(done))
  }

  get check(): object {
    const how = { protocol: 'HTTP', path: '/healthz', interval: '1s', failureThreshold: 1 }
    return { healthCheck: { ...how, port: this.port } }
  }
}

const weighted = (host: string, target: string): object => ({
  ...address(host, target),
  setIdentifier: target,
  providerSpecific: [{ name: 'weight', value: '100' }],
})

/** A nameserver of a cluster. */
class Nameserver {
  readonly #server: RunningServer
  readonly #site: DelegationSite
  readonly #resolver = new Resolver({ timeout: 2000, tries: 3 })

  private constructor(server: RunningServer, site: DelegationSite) {
    this.#server = server
    this.#site = site
    this.#resolver.setServers([`127.0.0.1:${server.port}`])
  }

  static async start(t: Test, site: DelegationSite): Promise<Nameserver> {
    const kuadrant = `kuadrant {\n    kubeconfig ${site.cluster.kubeconfig('admin')}\n  }`
    const corefile = `${ZONE}:{PORT} {\n  bind 127.0.0.1\n  errors\n  ${kuadrant}\n}\n`
    const server = await startServer(t, { corefile, env: { WATCH_NAMESPACES: 'gateways' } })
    return new Nameserver(server, site)
  }

  get output(): string {
    return this.#server.output()
  }

  /** Addresses of a host in order; '' = none. */
  async ask(host: string): Promise<string> {
    const found = await this.#resolver.resolve4(host).catch(() => [])
    return found.sort().join(' ')
  }

  /** Waits until the host has these addresses; '' = none. */
  async serves(host: string, want: string): Promise<void> {
    await this.#wait(`${host} to be "${want}"`, async () => (await this.ask(host)) === want)
  }

  /** Waits until one client gets the same of two weighted addresses again and again. */
  async isSticky(host: string): Promise<void> {
    await this.#wait(`${host} to be sticky`, async () => {
      const first = await this.ask(host)
      for (let i = 0; i < DRAWS; i++) if ((await this.ask(host)) !== first) return false
      return first !== ''
    })
  }

  async #wait(what: string, isSo: () => Promise<boolean>): Promise<void> {
    await until(isSo, what, SEEN_MS).catch(async (error: Error) => {
      const records = JSON.stringify(await this.#site.list(), undefined, 1)
      throw new Error(
        `${error.message}:\n${records}\n${this.output}\n${this.#site.operator.output}`,
      )
    })
  }
}

t.setTimeout(CLUSTER_TEST_MS)

/** API servers for all: each takes ten seconds to start. */
t.test('health and settings reach the nameserver', needsCluster(), async (t) => {
  const gateways = await Gateways.start(t, [ONE, TWO])
  const { check } = gateways
  const allow = '--probe-allow=127.0.0.0/8'
  const dublin = await DelegationSite.start(t, 'dublin', allow, '--site=dublin')
  const secondary = '--delegation-role=secondary'
  const boston = await DelegationSite.start(t, 'boston', allow, '--site=boston', secondary)
  await dublin.provide(ZONE)
  for (const site of [dublin, boston]) await site.operate()
  await dublin.follow(boston)
  const server = await Nameserver.start(t, dublin)
  /** One record with each address: in the way in which the host is published. */
  const ways = [
    { host: `plain.${ZONE}`, sites: [dublin, dublin], more: { delegate: false } },
    { host: `delegated.${ZONE}`, sites: [dublin, dublin], more: {} },
    { host: `clusters.${ZONE}`, sites: [dublin, boston], more: {} },
  ] as const

  const nameOf = (host: string, index: number): string => `${host.split('.')[0]}-${index}`
  for (const { host, sites, more } of ways) {
    for (const [i, target] of [ONE, TWO].entries()) {
      await sites[i]!.create(nameOf(host, i), host, [address(host, target)], { ...more, ...check })
    }
  }

  await t.test('all records of a host are served while they are up', async () => {
    for (const { host } of ways) await server.serves(host, `${ONE} ${TWO}`)
  })

  await t.test('the address that is down is not served while another record has one', async () => {
    await gateways.stop(TWO)
    for (const { host } of ways) await server.serves(host, ONE)
    await gateways.stop(ONE)
    for (const { host } of ways) await server.serves(host, `${ONE} ${TWO}`)
    await gateways.run(TWO)
    for (const { host } of ways) await server.serves(host, TWO)
  })

  await t.test('all-down of one record is in force for its host', async () => {
    for (const { host, sites } of ways) {
      await sites[1].annotate(nameOf(host, 1), { 'sextant.io/all-down': 'closed' })
    }
    await gateways.stop(TWO)
    for (const { host } of ways) await server.serves(host, '')
    await gateways.run(ONE)
    await gateways.run(TWO)
    for (const { host } of ways) await server.serves(host, `${ONE} ${TWO}`)
  })

  await t.test('sticky of one record is in force for its host', async () => {
    for (const { host, sites } of ways) {
      for (const [i, target] of [ONE, TWO].entries()) {
        await sites[i]!.edit(nameOf(host, i), [weighted(host, target)])
      }
      await sites[1].annotate(nameOf(host, 1), { 'sextant.io/sticky': 'true' })
    }
    for (const { host } of ways) await server.isSticky(host)
  })

  await t.test('a drain of one record takes it out', async () => {
    for (const { host, sites } of ways) {
      await sites[1].annotate(nameOf(host, 1), { 'sextant.io/drain': 'racks move' })
    }
    for (const { host } of ways) await server.serves(host, ONE)
    for (const { host, sites } of ways) {
      await sites[1].annotate(nameOf(host, 1), { 'sextant.io/drain': null })
      await sites[0].annotate(nameOf(host, 0), { 'sextant.io/drain': 'racks move' })
    }
    for (const { host } of ways) await server.serves(host, TWO)
  })

  await t.test('a restarted operator writes nothing', async (t) => {
    const versions = async () => [...(await dublin.versions()), ...(await boston.versions())]
    let before = await versions()
    let sinceMs = performance.now()
    await dublin.wait('silence', async () => {
      const now = await versions()
      if (now.join() !== before.join()) sinceMs = performance.now()
      before = now
      return performance.now() - sinceMs >= QUIET_MS
    })
    for (const site of [dublin, boston]) {
      await site.operator.stop()
      await site.operate()
    }
    await dublin.create('new', `new.${ZONE}`, [address(`new.${ZONE}`, '192.0.2.1')])
    await server.serves(`new.${ZONE}`, '192.0.2.1')
    const after = await versions()
    t.strictSame(
      before.filter((version) => !after.includes(version)),
      [],
    )
    t.notMatch(server.output, /sextant\.io\/sites/, 'the server refused no facts')
  })
})
