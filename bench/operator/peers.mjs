// Plain servers as the nameservers of other sites: each has an endpoint of every host and tells it in its zone kdrnt.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startProcess } from '../peers/server-process.mjs'

const MAIN = new URL('../../dist/main.js', import.meta.url).pathname
export const ZONE = 'k.example.com'
export const SITES = [1, 2, 3]
export const PORT = 5300
export const HTTP_PORT = 9153
/** Where the operator takes NOTIFYs, on 127.0.0.1. */
export const NOTIFY_PORT = 5399
/** Hosts that have a file of their own, so that a change of one is cheap to write. */
export const SINGLES = 100

export const hostOf = (i) => `app-${i}.${ZONE}`
export const addressOf = (site, i) => `10.${site}.${(i >> 8) & 255}.${i & 255}`

/** The endpoint that `site` has of host `i`. */
export const endpointOf = (site, i, address = addressOf(site, i)) => ({
  dnsName: hostOf(i),
  recordType: 'A',
  recordTTL: 60,
  setIdentifier: `site-${site}`,
  targets: [address],
  providerSpecific: [{ name: 'weight', value: '120' }],
})

export const recordOf = (site, i, address) => ({
  apiVersion: 'kuadrant.io/v1alpha1',
  kind: 'DNSRecord',
  metadata: { name: `app-${i}`, namespace: 'apps', creationTimestamp: '2026-01-01T00:00:00Z' },
  spec: { rootHost: hostOf(i), endpoints: [endpointOf(site, i, address)] },
})

const siteDirectory = (directory, site) => join(directory, `peer-${site}`)

export function writeManifests(directory, records) {
  for (const site of SITES) {
    const folder = join(siteDirectory(directory, site), 'records')
    mkdirSync(folder, { recursive: true })
    for (let i = 0; i < Math.min(SINGLES, records); i++) editRecord(directory, site, i)
    const rest = Array.from({ length: Math.max(0, records - SINGLES) }, (_, i) => {
      return JSON.stringify(recordOf(site, i + SINGLES))
    })
    if (rest.length > 0) writeFileSync(join(folder, 'rest.yaml'), rest.join('\n---\n'))
  }
}

/** Puts another address, or the first one, into the record of a host that has its own file. */
export function editRecord(directory, site, i, address) {
  const folder = siteDirectory(directory, site)
  writeFileSync(join(folder, '.next'), JSON.stringify(recordOf(site, i, address)))
  renameSync(join(folder, '.next'), join(folder, 'records', `app-${i}.json`))
}

/** `transfers`: false = the zone kdrnt is asked name by name. `notifies`: the operator is told of changes. */
export function startPeer({ directory, site, address, transfers, notifies }) {
  const folder = siteDirectory(directory, site)
  const told = notifies ? `127.0.0.1:${NOTIFY_PORT}` : ''
  const transfer = transfers ? `transfer {\n to 127.0.0.0/8 ${told}\n }` : ''
  const block = (zone, lines) => `${zone}:${PORT} {
    bind ${address}
    prometheus ${address}:${HTTP_PORT}
    ${lines}
    kuadrant {
        manifests ${join(folder, 'records')}
        site peer-${site}
    }
}
`
  const path = join(folder, 'Corefile')
  writeFileSync(path, block('kdrnt', transfer) + block(ZONE, `ready ${address}:${HTTP_PORT}`))
  return startProcess(`peer ${site}`, process.execPath, [MAIN, 'serve', '-conf', path])
}
