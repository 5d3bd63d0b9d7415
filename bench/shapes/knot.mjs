import { join } from 'node:path'
import {
  ENDPOINTS,
  GEO_NAME,
  GEO_ZONE,
  masterFile,
  PLAIN_ZONE,
  plainLines,
  SIGNED_GEO_NAME,
  SIGNED_GEO_ZONE,
} from '../peers/content.mjs'
import { write } from '../peers/files.mjs'
import { writeConfig } from '../peers/servers/knot.mjs'
import { CHAIN_HOST, plainZoneLines } from './shapes.mjs'

const ALIAS = `klb.${CHAIN_HOST}`
const zoneFile = (directory, zone, lines) => write(join(directory, zone), masterFile(zone, lines))

/**
 * mod-geoip chooses by place or by weight; so the chain is chosen by place only, and has no weights.
 * mod-cookies asks clients without a server cookie to repeat, so there is no figure for cookies.
 */
export const knot = {
  name: 'Knot',
  command: 'knotd',
  lacks: ['cookie', 'geo-cookie', 'one', 'several'],
  prepare({ directory, port, mmdb, signedZones }) {
    const codes = Object.entries(ENDPOINTS).map(([code, [{ address }]]) => ({ code, address }))
    zoneFile(directory, PLAIN_ZONE, plainZoneLines(plainLines))
    zoneFile(directory, GEO_ZONE, [
      `app 60 IN A ${ENDPOINTS.EU[0].address}\nshop 60 IN CNAME klb.shop\nklb.shop 60 IN CNAME eu.klb.shop\n`,
      ...codes.map(({ code, address }) => {
        const place = code.toLowerCase()
        return `${place}.klb.shop 60 IN CNAME g0-${place}.klb.shop\ng0-${place}.klb.shop 60 IN A ${address}\n`
      }),
    ])
    zoneFile(directory, SIGNED_GEO_ZONE, [`app 60 IN A ${ENDPOINTS.EU[0].address}\n`])
    write(join(directory, 'signed-geo.conf'), [
      `${SIGNED_GEO_NAME}:\n`,
      ...codes.map(({ code, address }) => `  - geo: "${code}"\n    A: ${address}\n`),
    ])
    write(join(directory, 'geo.conf'), [
      `${GEO_NAME}:\n`,
      ...codes.map(({ code, address }) => `  - geo: "${code}"\n    A: ${address}\n`),
      `${ALIAS}:\n`,
      ...codes.map(
        ({ code }) => `  - geo: "${code}"\n    CNAME: ${code.toLowerCase()}.${ALIAS}.\n`,
      ),
    ])
    return writeConfig({ directory, port, mmdb }, [
      { zone: PLAIN_ZONE, file: PLAIN_ZONE },
      { zone: GEO_ZONE, file: GEO_ZONE, geo: 'geo' },
      { zone: SIGNED_GEO_ZONE, file: SIGNED_GEO_ZONE, geo: 'signed-geo', signed: true },
      ...signedZones,
    ])
  },
}
