import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ENDPOINTS, GEO_NAME, GEO_ZONE, masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'

export const knot = {
  name: 'Knot',
  command: 'knotd',
  debian: 'knot and knot-module-geoip',
  // mod-geoip chooses by place or by weight, not by one within the other.
  unweighted: true,
  prepare({ directory, port, mmdb, names, geo }) {
    mkdirSync(join(directory, 'db'), { recursive: true })
    const zone = geo ? GEO_ZONE : PLAIN_ZONE
    // The default answer is a record of the zone itself.
    const lines = geo ? [`app 60 IN A ${ENDPOINTS.EU[0].address}\n`] : plainLines(names)
    write(join(directory, 'zone'), masterFile(zone, lines))
    if (geo) {
      const places = Object.entries(ENDPOINTS).map(
        ([code, [{ address }]]) => `  - geo: "${code}"\n    A: ${address}\n`,
      )
      write(join(directory, 'geo.conf'), [`${GEO_NAME}:\n`, ...places])
    }
    write(
      join(directory, 'knot.conf'),
      `server:
    rundir: ${directory}
    listen: 127.0.0.1@${port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
    edns-client-subnet: on
log:
  - target: stderr
    any: warning
database:
    storage: ${directory}/db
${geo ? module(directory, mmdb) : ''}zone:
  - domain: ${zone}
    storage: ${directory}
    file: zone
    journal-content: none
${geo ? '    module: mod-geoip/geo\n' : ''}`,
    )
    return ['-c', join(directory, 'knot.conf')]
  },
}

const module = (directory, mmdb) => `mod-geoip:
  - id: geo
    config-file: ${directory}/geo.conf
    ttl: 60
    mode: geodb
    geodb-file: ${mmdb}
    geodb-key: [ continent/code ]
`
