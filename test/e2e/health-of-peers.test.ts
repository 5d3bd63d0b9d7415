import t, { type Test } from 'tap'
import { until } from '../support/until.ts'
import { EUROPE, pairOf, Site, ZONE } from './sites.ts'

// Long: it waits until sites are down and up again.

/** From a probe result at one site to the answers of the other, on a machine on which other tests run too. */
const SEEN_MS = 120_000
/** Of two addresses that are drawn alike one stays away from so many answers once in a million times. */
const DRAWS = 20
const PAIR = `pair.${ZONE}`
const ONE = '192.0.2.21'
const TWO = '192.0.2.22'

/** Both addresses, each an endpoint of its own, with the same weight. */
function pair(): string {
  const endpoint = (target: string) =>
    `  - {dnsName: ${PAIR}, recordType: A, recordTTL: 60, setIdentifier: s${target}, targets: [${target}], providerSpecific: [{name: weight, value: "100"}]}\n`
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSRecord
metadata: {name: pair, namespace: gateways}
spec:
  rootHost: ${PAIR}
  endpoints:
${endpoint(ONE)}${endpoint(TWO)}`
}

/** A probe result of an address of the record `of`. */
function finding(of: string, address: string, isHealthy: boolean): string {
  return `apiVersion: kuadrant.io/v1alpha1
kind: DNSHealthCheckProbe
metadata:
  name: ${of}-${address}
  namespace: gateways
  labels:
    kuadrant.io/health-probes-owner: ${of}
spec: {address: ${address}}
status: {healthy: ${isHealthy}}
`
}

/** Waits until a site answers clients in Europe with all of these addresses, and with no others. */
async function answers(site: Site, name: string, want: readonly string[]): Promise<void> {
  let got = new Set<string>()
  const isSo = async () => {
    got = new Set()
    for (let i = 0; i < DRAWS; i++) {
      const address = await site.ask(EUROPE, name)
      got.add(address)
      if (!want.includes(address)) return false
      // More of them would show nothing new.
      if (want.length > 1 && got.size === want.length) return true
    }
    return got.size === want.length
  }
  const { name: who } = site.options
  await until(isSo, `${want} for ${name} in the ${who}`, SEEN_MS).catch((error: Error) => {
    throw new Error(`${error.message}, it is ${[...got]}:\n${site.output}`)
  })
}

async function startPair(t: Test, files: Readonly<Record<string, string>>): Promise<Site[]> {
  const options = await pairOf()
  const east = { ...options.east, files: { ...options.east.files, ...files } }
  return [await Site.start(t, east), await Site.start(t, options.west)]
}

t.test(
  'an address that one site finds down is not served by the other, until it is up again',
  async (t) => {
    const [east, west] = (await startPair(t, { 'zones/pair.yaml': pair() })) as [Site, Site]
    const sites = [east, west]
    for (const site of sites) await answers(site, PAIR, [ONE, TWO])
    // A v2 peer.
    await west.prints(/peer 127\.0\.1\.1:\d+ is followed/)

    east.write('zones/one.yaml', finding('pair', ONE, false))
    for (const site of sites) await answers(site, PAIR, [TWO])

    // Health empties no set, at any site.
    east.write('zones/two.yaml', finding('pair', TWO, false))
    for (const site of sites) await answers(site, PAIR, [ONE, TWO])

    east.write('zones/two.yaml', finding('pair', TWO, true))
    for (const site of sites) await answers(site, PAIR, [TWO])

    east.write('zones/one.yaml', finding('pair', ONE, true))
    for (const site of sites) await answers(site, PAIR, [ONE, TWO])

    east.write('zones/one.yaml', finding('pair', ONE, false))
    await answers(west, PAIR, [TWO])
    // An address without a probe result is not down.
    east.remove('zones/one.yaml')
    for (const site of sites) await answers(site, PAIR, [ONE, TWO])
  },
)

t.test('for an address of both sites, each site uses its own probe result', async (t) => {
  const found = { 'zones/pair.yaml': pair(), 'zones/one.yaml': finding('pair', ONE, false) }
  const [east, west] = (await startPair(t, found)) as [Site, Site]
  for (const site of [east, west]) await answers(site, PAIR, [TWO])
  west.write('zones/pair.yaml', pair())
  west.write('zones/one.yaml', finding('pair', ONE, true))
  await answers(west, PAIR, [ONE, TWO])
  await east.prints(
    /sites disagree about 192\.0\.2\.21 of pair\.k\.example\.com: east \(home\) down/,
  )
  await answers(east, PAIR, [TWO])
  west.write('zones/one.yaml', finding('pair', ONE, false))
  for (const site of [east, west]) await answers(site, PAIR, [TWO])
})
