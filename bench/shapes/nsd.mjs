import { join } from 'node:path'
import { masterFile, PLAIN_ZONE, plainLines } from '../peers/content.mjs'
import { write } from '../peers/files.mjs'
import { writeConfig } from '../peers/servers/nsd.mjs'
import { plainZoneLines } from './shapes.mjs'

/** It chooses nothing. */
export const nsd = {
  name: 'NSD',
  command: 'nsd',
  lacks: ['cookie', 'geo', 'geo-cookie', 'chain', 'one', 'several', 'signed-geo', 'signed-geo-do'],
  prepare({ directory, port, signedZones }) {
    const file = join(directory, 'zone')
    write(file, masterFile(PLAIN_ZONE, plainZoneLines(plainLines)))
    return writeConfig({ directory, port }, [{ zone: PLAIN_ZONE, file }, ...signedZones])
  },
}
