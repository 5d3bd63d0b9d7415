import { join } from 'node:path'
import { ENDPOINTS, GEO_ZONE, PLAIN_ZONE, plainAddress, simpleName } from '../content.mjs'
import { write } from '../files.mjs'

export const powerdns = {
  name: 'PowerDNS',
  command: 'pdns_server',
  debian: 'pdns-server and pdns-backend-geoip',
  prepare({ directory, port, mmdb, names, geo }) {
    write(join(directory, 'geo.yaml'), geo ? geoZone() : plainZone(names))
    // Answers by place must not come from its caches; plain ones may, as anyone would run it.
    const caches = geo ? 'cache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\n' : ''
    write(
      join(directory, 'pdns.conf'),
      `launch=geoip
geoip-zones-file=${directory}/geo.yaml
geoip-database-files=mmdb:${mmdb}
edns-subnet-processing=yes
local-address=127.0.0.1
local-port=${port}
receiver-threads=1
socket-dir=${directory}
daemon=no
guardian=no
disable-syslog=yes
loglevel=3
${caches}`,
    )
    return [`--config-dir=${directory}`]
  },
}

const head = (zone) => `domains:
- domain: ${zone}
  ttl: 60
  records:
    ${zone}:
      - soa: ns1.${zone} hostmaster.${zone} 1 7200 1800 86400 60
      - ns: ns1.${zone}
`

function* geoZone() {
  yield head(GEO_ZONE)
  for (const [code, endpoints] of Object.entries(ENDPOINTS)) {
    yield `    ${code.toLowerCase()}.${GEO_ZONE}:\n`
    for (const { address, weight } of endpoints) {
      yield `      - a: { content: ${address}, weight: ${weight} }\n`
    }
  }
  yield `  services:
    app.${GEO_ZONE}: { default: [ '%cn.${GEO_ZONE}', 'eu.${GEO_ZONE}' ] }
`
}

function* plainZone(names) {
  yield head(PLAIN_ZONE)
  for (let i = 0; i < names; i++) yield `    ${simpleName(i)}:\n      - a: ${plainAddress(i)}\n`
  yield '  services: {}\n'
}
