import { join } from 'node:path'
import { masterFile, PLAIN_ZONE, plainLines } from '../content.mjs'
import { write } from '../files.mjs'

export const coredns = {
  name: 'CoreDNS',
  command: 'coredns',
  // Not in Debian: its binary is taken from PATH.
  debian: undefined,
  // Its geoip tells where a client is; nothing in it chooses endpoints by that.
  withoutGeo: true,
  env: { GOMAXPROCS: '1' },
  prepare({ directory, port, names }) {
    write(join(directory, 'zone'), masterFile(PLAIN_ZONE, plainLines(names)))
    write(
      join(directory, 'Corefile'),
      `${PLAIN_ZONE}:${port} {\n    bind 127.0.0.1\n    file ${directory}/zone\n}\n`,
    )
    return ['-conf', join(directory, 'Corefile')]
  },
}
