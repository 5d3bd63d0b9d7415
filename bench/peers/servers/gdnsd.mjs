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
    for (const folder of ['run', 'state', 'zones', 'geoip']) {
      mkdirSync(join(directory, folder), { recursive: true })
    }
    if (geo)
      write(join(directory, 'zones', GEO_ZONE), masterFile(GEO_ZONE, ['app 60 DYNA geoip!app\n']))
    else write(join(directory, 'zones', PLAIN_ZONE), masterFile(PLAIN_ZONE, plainLines(names)))
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
${geo ? plugins(mmdb) : ''}`,
    )
    return ['-c', directory, 'start']
  },
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
