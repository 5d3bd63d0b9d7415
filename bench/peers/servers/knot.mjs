import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ENDPOINTS, GEO_NAME, GEO_ZONE, masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'
import { findCommand } from '../server-process.mjs'

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
      { zone, file: 'zone', ...(geo ? { geo: 'geo' } : {}) },
    ])
  },
}

/**
 * Writes knot.conf for `zones`; returns the arguments of knotd. `geo`: mod-geoip reads the file of this name, with the
 * extension `.conf`. `signed`: Knot signs the zone, and mod-geoip its answers.
 */
export function writeConfig({ directory, port, mmdb }, zones) {
  mkdirSync(join(directory, 'db'), { recursive: true })
  const path = join(directory, 'knot.conf')
  const zoneLines = zones.map(
    ({ zone, file, geo, signed }) => `  - domain: ${zone}
    storage: ${directory}
    file: ${file}
    journal-content: none
${signed ? '    zonefile-load: whole\n    zonefile-sync: -1\n    dnssec-signing: on\n    dnssec-policy: csk\n' : ''}${geo ? `    module: mod-geoip/${geo}\n` : ''}`,
  )
  const geoNames = zones.flatMap(({ geo }) => geo ?? [])
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
policy:
  - id: csk
    algorithm: ecdsap256sha256
    single-type-signing: on
${mmdb === undefined ? '' : `mod-geoip:\n${geoNames.map((name) => module(directory, name, mmdb)).join('')}`}zone:
`,
    ...zoneLines,
  ])
  for (const { zone } of zones.filter(({ signed }) => signed)) makeKey(path, zone)
  return ['-c', path]
}

/** mod-geoip does not load if the zone has no key yet. */
function makeKey(path, zone) {
  const key = ['algorithm=ecdsap256sha256', 'ksk=yes', 'zsk=yes']
  execFileSync(findCommand('keymgr'), ['-c', path, zone, 'generate', ...key], { stdio: 'ignore' })
}

const module = (directory, name, mmdb) => `  - id: ${name}
    config-file: ${directory}/${name}.conf
    ttl: 60
    mode: geodb
    geodb-file: ${mmdb}
    geodb-key: [ continent/code ]
`
