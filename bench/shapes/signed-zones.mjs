// The signed zones: `dnssec-signzone` of BIND signs them with a CSK, ECDSA P-256.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { masterFile, plainLines } from '../peers/content.mjs'
import { write } from '../peers/files.mjs'
import { SIGNED_ZONES, unsignedZoneLines } from './shapes.mjs'

/** Signs the zones in a new folder; returns their names and files. */
export function signZones(folder) {
  mkdirSync(folder)
  return Object.entries(SIGNED_ZONES).map(([zone, denial]) => {
    const cwd = { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] }
    write(join(folder, zone), masterFile(zone, unsignedZoneLines(plainLines)))
    const options = ['-q', '-K', folder, '-f', 'KSK', '-a', 'ECDSAP256SHA256']
    execFileSync('dnssec-keygen', [...options, zone], cwd)
    const hashing = denial === 'nsec3' ? ['-3', '-', '-H', '0'] : []
    const signing = ['-S', '-z', '-K', folder, '-o', zone, ...hashing, zone]
    execFileSync('dnssec-signzone', signing, cwd)
    return { zone, file: join(folder, `${zone}.signed`) }
  })
}
