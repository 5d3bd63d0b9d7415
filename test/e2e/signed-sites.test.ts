import { cpSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Random } from '../../src/base/random.ts'
import { RRType } from '../../src/dns/iana/types.ts'
import { printRdata } from '../../src/dns/rdata/index.ts'
import type { Question } from '../support/client.ts'
import { needs } from '../support/peer.ts'
import { freePort } from '../support/server.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { until } from '../support/until.ts'
import { startNamedResolver, startUnboundResolver } from './resolvers.ts'
import { makeSettledKeys } from './settled-keys.ts'
import { dnskeysOf, SignedClients, strictCheck } from './signed-clients.ts'
import { SiteRecords } from './site-records.ts'
import { AMERICA, ELSEWHERE, EUROPE, Site, ZONE } from './sites.ts'

// Long: it starts several servers and resolvers.

/*
 * Sites with the same keys whose endpoints differ for a while: one of them has an edit that the others lack, is stopped, is
 * killed, and returns. Each answer of each site validates, also in resolvers that mix records of all of them.
 */

const SITES = ['east', 'west', 'north']
const EDITS = 12
const NETWORKS = [EUROPE, AMERICA, ELSEWHERE]
t.setTimeout(600_000)

/** Sites that are peers of each other. Two of them share a directory of keys, the third has a copy. */
async function startSites(t: Test, denial: string, records: readonly SiteRecords[]) {
  const folder = temporaryDirectory(t)
  const [keys, copy] = [join(folder, 'keys'), join(folder, 'copy')]
  await makeSettledKeys(keys, ZONE, denial === 'nsec3')
  cpSync(keys, copy, { recursive: true })
  const ports: number[] = []
  for (const _ of SITES) ports.push(await freePort())
  const sites: Site[] = []
  for (const [i, name] of SITES.entries()) {
    const others = ports.filter((port) => port !== ports[i]).map((port) => `127.0.0.1:${port}`)
    const dnssec = `dnssec {
  keys ${i < 2 ? keys : copy}
  denial ${denial}
  ${denial === 'nsec3' ? 'split' : ''}
  signatures_per_second 60000 60000
 }`
    const site = await Site.start(t, {
      ...{ name, address: '127.0.0.1', port: ports[i]!, peers: others, transferTo: others },
      zoneLines: `multisocket 1\n${dnssec}`,
      lines: 'silent-site keep 1h\n answers 1',
      // More edits than one a second: a serial from the clock could be used again after the kill.
      kdrntKuadrant: `site ${name}\n serials serials`,
      files: { 'zones/app.yaml': records[i]!.text() },
    })
    sites.push(site)
  }
  return { sites, ports }
}

function questionsOf(random: Random): () => Question {
  return () => {
    const subnet = NETWORKS[random.below(NETWORKS.length)]!
    return { ...SiteRecords.question(random), subnet }
  }
}

const tools = needs('unbound', 'named')
for (const denial of ['nsec', 'nsec3', 'compact']) {
  t.test(`answers of sites that differ for a while validate, ${denial}`, tools, async (t) => {
    const records = SITES.map((_, i) => new SiteRecords(i))
    const { sites, ports } = await startSites(t, denial, records)
    const dnskeys = await dnskeysOf(ports[0]!, ZONE)
    for (const port of ports)
      t.strictSame(await dnskeysOf(port, ZONE), dnskeys, 'all have the same keys')
    const clients = new SignedClients(questionsOf(new Random(7)))
    const key = dnskeys.find((dnskey) => dnskey[1] === 1)!
    const delegated = {
      key: `${ZONE}. 60 IN DNSKEY ${printRdata(RRType.DNSKEY, key)}`,
      zones: { [ZONE]: ports },
    }
    const resolvers = [
      await startUnboundResolver(t, delegated),
      {
        ...(await startUnboundResolver(t, { ...delegated, reuses: 'proofs' })),
        name: 'mixing Unbound',
      },
      await startNamedResolver(t, delegated),
    ]
    for (const resolver of resolvers) await clients.askResolver(resolver)
    for (const [i, name] of SITES.entries()) {
      await clients.askServer(name, ports[i]!, strictCheck(clients, ZONE, dnskeys))
    }
    await disturb(sites, records, clients)
    await clients.stop()
    for (const who of [...resolvers.map(({ name }) => name), ...SITES]) {
      const count = clients.countOf(who)
      t.ok(count > 100, `${who}: ${count} answers`)
    }
    const { faults } = clients
    t.equal(faults.length, 0, faults.slice(0, 30).join('\n'))
    for (const site of sites) t.notMatch(site.output, /\[ERROR\]/)
  })
}

/** Edits all sites in turn; one site at a time is alone with its edits, because it or the others hear nothing. */
async function disturb(
  sites: readonly Site[],
  records: readonly SiteRecords[],
  clients: SignedClients,
): Promise<void> {
  const edit = async (index: number): Promise<void> => {
    const { count } = clients
    sites[index]!.write('zones/app.yaml', records[index]!.edit())
    await until(() => clients.count >= count + 60, 'answers after an edit')
  }
  const [, west, north] = sites as readonly [Site, Site, Site]
  for (let i = 0; i < EDITS; i++) await edit(i % sites.length)
  west.pause()
  for (let i = 0; i < EDITS; i++) await edit(i % 2 === 0 ? 0 : 2)
  west.resume()
  await edit(1)
  await north.kill()
  for (let i = 0; i < EDITS; i++) await edit(i % sites.length)
  await north.restart()
  await edit(0)
  await edit(1)
  const areEqual = async (): Promise<boolean> => {
    const [first, ...others] = await Promise.all(sites.map((site) => contentOf(site)))
    return others.every((one) => one === first)
  }
  await until(areEqual, 'all sites to have the same')
}

/** What a site answers for the hosts that have one answer. */
async function contentOf(site: Site): Promise<string> {
  const answers = SiteRecords.hosts().map((host) => site.ask(EUROPE, host))
  return (await Promise.all(answers)).join()
}
