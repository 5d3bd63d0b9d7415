// Claims: what merging takes: hosts whose endpoints three other sites have as well, as an operator merges them.
//   npm run build && node bench/merge.mjs [hosts] [rounds]

import { composeServed } from '../dist/operator/plan/served-endpoints.js'
import { chooseEndpoints } from '../dist/peering/merge/choose-endpoints.js'
import { chooseOthers } from '../dist/peering/merge/choose-site-states.js'
import { RecordSet } from '../dist/peering/record-set.js'
import { buildSiteRecords } from '../dist/peering/site-records.js'
import { toPeerEndpoint } from '../dist/peering/to-peer-endpoint.js'
import { printSteered, printSteering } from '../dist/records/print-endpoint.js'
import { validateEndpoint } from '../dist/records/validate/dns-record.js'
import { validateResource } from '../dist/records/validate/resource.js'

const [hosts = 1000, rounds = 21] = process.argv.slice(2).map(Number)
const SITES = 3
const SILENT_MS = 24 * 3600 * 1000
const NOW_MS = 1_790_000_000_000

function endpoint(site, rootHost, dnsName, recordType, target, steering = {}) {
  const unsteered = { setIdentifier: '', weight: undefined, geoCodes: [], isDefault: false }
  const object = {
    ...{ dnsName, recordType, recordTTL: 60, targets: [target] },
    ...printSteering({ ...unsteered, ...steering }),
  }
  const facts = { site, rootHost, health: 'unknown', sinceSeconds: 1_780_000_000 }
  return toPeerEndpoint(validateEndpoint(object, rootHost).endpoint, facts)
}

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

const STATE = { site: 'here', down: [], foreignDown: new Set(), drain: undefined, timeMs: NOW_MS }

function contentOf(rootHost, endpoints) {
  return validateResource({
    apiVersion: 'kuadrant.io/v1alpha1',
    kind: 'DNSRecord',
    metadata: { name: 'app', namespace: 'n' },
    spec: { rootHost, endpoints: endpoints.map(({ endpoint }) => printSteered(endpoint)) },
  }).record
}

for (const [name, make] of [
  ['one address each', single],
  ['a gateway of four endpoints each', layout],
]) {
  const work = Array.from({ length: hosts }, (_, i) => {
    const host = `app-${i}.k.example.com`
    return {
      rootHost: host,
      record: { key: `n/${host}` },
      own: make('here', host, 0),
      content: contentOf(host, make('here', host, 0)),
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
    for (const { own, reported, ...record } of work) {
      const { endpoints } = chooseEndpoints(own, chooseOthers('here', reported, SILENT_MS))
      const foreign = buildSiteRecords(record.rootHost, endpoints, '', RecordSet.EMPTY)
      merged += composeServed(record, { ...STATE, foreign }).length
    }
    const spent = process.cpuUsage({ user, system })
    return (spent.user + spent.system) / 1000
  }).sort((a, b) => a - b)
  const median = times[times.length >> 1].toFixed(1)
  console.log(
    `${hosts} hosts, ${SITES} other sites, ${name}: ${median} ms of CPU, ${times.at(-1).toFixed(1)} worst (${merged} endpoints)`,
  )
}
