import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ENDPOINTS, GEO_ZONE, masterFile, PLAIN_ZONE, plainLines } from '../peers/content.mjs'
import { write } from '../peers/files.mjs'
import { plainZoneLines } from './shapes.mjs'

const weighted = (prefix, endpoints) =>
  endpoints.map(({ address, weight }, i) => `${prefix}${i} => [ ${address}, ${weight} ]`).join(', ')
/** By weight; gdnsd has no CNAME that is chosen by place and leads to one that is chosen by weight. */
const chain = 'shop 60 CNAME klb.shop\nklb.shop 60 CNAME eu.klb.shop\neu.klb.shop 60 CNAME app\n'

export const gdnsd = {
  name: 'gdnsd',
  command: 'gdnsd',
  lacks: [],
  prepare({ directory, port, mmdb }) {
    for (const folder of ['run', 'state', 'zones', 'geoip']) {
      mkdirSync(join(directory, folder), { recursive: true })
    }
    const geoLines = ['app 60 DYNA geoip!app\n', chain]
    write(join(directory, 'zones', GEO_ZONE), masterFile(GEO_ZONE, geoLines))
    write(join(directory, 'zones', PLAIN_ZONE), masterFile(PLAIN_ZONE, plainZoneLines(plainLines)))
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
plugins => {
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
`,
    )
    return ['-c', directory, 'start']
  },
}
