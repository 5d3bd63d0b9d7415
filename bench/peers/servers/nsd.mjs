import { join } from 'node:path'
import { masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'

/** Plain zones only: it chooses nothing. */
export const nsd = {
  name: 'NSD',
  command: 'nsd',
  debian: 'nsd',
  withoutGeo: true,
  prepare({ directory, port, names }) {
    write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
    write(join(directory, 'nsd.conf'), [
      `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  server-count: 1
  tcp-count: 4000
  pidfile: "${directory}/nsd.pid"
  xfrdfile: ""
  zonelistfile: "${directory}/nsd.list"
  logfile: "${directory}/nsd.log"
remote-control:
  control-enable: no
zone:
  name: ${PLAIN_ZONE}
  zonefile: ${directory}/zone
`,
    ])
    return ['-d', '-c', join(directory, 'nsd.conf')]
  },
}
