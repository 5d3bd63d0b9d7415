// Claims: what merging takes: hosts whose endpoints three other sites have as well, as an operator merges them.
//   npm run build && node bench/merge.mjs [hosts] [rounds]

import { chooseOthers } from '../dist/peering/merge/choose-site-states.js'
import { mergeSiteStates } from '../dist/peering/merge/merge-site-states.js'

const [hosts = 1000, rounds = 21] = process.argv.slice(2).map(Number)
const SITES = 3
const SILENT_MS = 24 * 3600 * 1000
const NOW_MS = 1_790_000_000_000

const endpoint = (site, rootHost, dnsName, recordType, target, more = {}) => ({
  site,
  rootHost,
  dnsName,
  recordType,
  ttlSeconds: 60,
  setIdentifier: '',
  weight: undefined,
  geoCodes: [],
  isDefault: false,
  targets: [target],
  health: 'unknown',
  sinceSeconds: 1_780_000_000,
  ...more,
})

/** One address with a weight. */
const single = (site, host, n) => [
  endpoint(site, host, host, 'A', `10.0.${n}.1`, { setIdentifier: site, weight: 120 }),
]

/** What Kuadrant's DNSPolicy makes of a gateway: a GEO step, a weight step, an address. */
function layout(site, host, n) {
  const geo = n % 2 === 0 ? 'GEO-EU' : 'GEO-NA'
  const place = `${geo.toLowerCase()}.klb.${host}`
  const leaf = `${site}.klb.${host}`
  return [
    endpoint(site, host, host, 'CNAME', `klb.${host}`),
    endpoint(site, host, `klb.${host}`, 'CNAME', place, { setIdentifier: geo, geoCodes: [geo] }),
    endpoint(site, host, place, 'CNAME', leaf, { setIdentifier: leaf, weight: 120 }),
    endpoint(site, host, leaf, 'A', `10.0.${n}.1`),
  ]
}

for (const [name, make] of [
  ['one address each', single],
  ['a gateway of four endpoints each', layout],
]) {
  const work = Array.from({ length: hosts }, (_, i) => {
    const host = `app-${i}.k.example.com`
    return {
      own: { endpoints: make('here', host, 0) },
      reported: Array.from({ length: SITES }, (_, n) => ({
        site: `site-${n}`,
        exporter: `site-${n}`,
        isOwn: true,
        rootHost: host,
        endpoints: make(`site-${n}`, host, n + 1),
        seenMs: NOW_MS,
        generation: 'v2',
      })),
    }
  })
  let merged = 0
  const times = Array.from({ length: rounds }, () => {
    const { user, system } = process.cpuUsage()
    merged = 0
    for (const { own, reported } of work) {
      merged += mergeSiteStates(own, chooseOthers('here', reported, SILENT_MS)).endpoints.length
    }
    const spent = process.cpuUsage({ user, system })
    return (spent.user + spent.system) / 1000
  }).sort((a, b) => a - b)
  const median = times[times.length >> 1].toFixed(1)
  console.log(
    `${hosts} hosts, ${SITES} other sites, ${name}: ${median} ms of CPU, ${times.at(-1).toFixed(1)} worst (${merged} endpoints)`,
  )
}
