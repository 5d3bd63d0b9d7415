import { GEO_ZONE, PLAIN_ZONE, plainLines } from '../peers/content.mjs'
import { writeConfig } from '../peers/servers/gdnsd.mjs'
import { DNSSEC_SHAPES, plainZoneLines } from './shapes.mjs'

/** By weight; gdnsd has no CNAME that is chosen by place and leads to one that is chosen by weight. */
const chain = 'shop 60 CNAME klb.shop\nklb.shop 60 CNAME eu.klb.shop\neu.klb.shop 60 CNAME app\n'

export const gdnsd = {
  name: 'gdnsd',
  command: 'gdnsd',
  lacks: ['one', 'several', ...DNSSEC_SHAPES],
  prepare({ directory, port, mmdb }) {
    return writeConfig(
      { directory, port, mmdb },
      {
        [GEO_ZONE]: ['app 60 DYNA geoip!app\n', chain],
        [PLAIN_ZONE]: plainZoneLines(plainLines),
      },
    )
  },
}
