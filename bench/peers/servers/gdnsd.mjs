import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ENDPOINTS, GEO_ZONE, masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'

const weighted = (prefix, endpoints) =>
  endpoints.map(({ address, weight }, i) => `${prefix}${i} => [ ${address}, ${weight} ]`).join(', ')

export const gdnsd = {
  name: 'gdnsd',
  command: 'gdnsd',
  debian: 'gdnsd',
  prepare({ directory, port, mmdb, names, geo }) {
    const zone = geo ? GEO_ZONE : PLAIN_ZONE
    const lines = geo ? ['app 60 DYNA geoip!app\n'] : plainLines(names)
    return writeConfig({ directory, port, mmdb: geo ? mmdb : undefined }, { [zone]: lines })
  },
}

/** Writes the configuration and `zones` (name: lines); returns the arguments of gdnsd. */
export function writeConfig({ directory, port, mmdb }, zones) {
  for (const folder of ['run', 'state', 'zones', 'geoip'])
    mkdirSync(join(directory, folder), { recursive: true })
  for (const [zone, lines] of Object.entries(zones))
    write(join(directory, 'zones', zone), masterFile(zone, lines))
  write(
    join(directory, 'config'),
    `options => {
  listen => 127.0.0.1:${port}
  udp_threads => 1
  tcp_threads => 1
  run_dir => ${directory}/run
  state_dir => ${directory}/state
  edns_client_subnet => true
}
${mmdb === undefined ? '' : plugins(mmdb)}`,
  )
  return ['-c', directory, 'start']
}

const plugins = (mmdb) => `plugins => {
  weighted => {
    service_types => up
    weu => { ${weighted('eu', ENDPOINTS.EU)} }
    wna => { ${weighted('na', ENDPOINTS.NA)} }
  }
  geoip => {
    maps => { m => {
      geoip2_db => ${mmdb}
      datacenters => [ eu, na ]
      map => { EU => [ eu, na ], NA => [ na, eu ], default => [ eu, na ] }
    } }
    resources => { app => { map => m, dcmap => { eu => "%weighted!weu", na => "%weighted!wna" } } }
  }
}
`
