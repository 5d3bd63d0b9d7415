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
    return writeConfig({ directory, port, mmdb: geo ? mmdb : undefined }, [
      { zone, file: 'zone', geo },
    ])
  },
}

/** Writes knot.conf for `zones`; returns the arguments of knotd. mod-geoip reads geo.conf. */
export function writeConfig({ directory, port, mmdb }, zones) {
  mkdirSync(join(directory, 'db'), { recursive: true })
  const path = join(directory, 'knot.conf')
  const zoneLines = zones.map(
    ({ zone, file, geo }) => `  - domain: ${zone}
    storage: ${directory}
    file: ${file}
    journal-content: none
${geo ? '    module: mod-geoip/geo\n' : ''}`,
  )
  write(path, [
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
${mmdb === undefined ? '' : module(directory, mmdb)}zone:
`,
    ...zoneLines,
  ])
  return ['-c', path]
}

const module = (directory, mmdb) => `mod-geoip:
  - id: geo
    config-file: ${directory}/geo.conf
    ttl: 60
    mode: geodb
    geodb-file: ${mmdb}
    geodb-key: [ continent/code ]
`
