import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'

const start = promisify(execFile)

export type SigningAlgorithm = 'RSASHA256' | 'RSASHA512' | 'ECDSAP256SHA256'

interface Nsec3Options {
  readonly salt: string
  readonly iterations: number
  readonly optOut: boolean
}

export interface SigningOptions {
  /** Without the final dot; `.` for the root. */
  readonly zone: string
  /** Master file, not signed. */
  readonly text: string
  readonly algorithm: SigningAlgorithm
  /** Absent = NSEC. `salt`: hexadecimal, `-` for none. */
  readonly nsec3?: Nsec3Options | undefined
  /** Further arguments of dnssec-signzone, such as `-e`. */
  readonly args?: readonly string[]
}

export interface SignedZone {
  /** Master file with the signatures. */
  readonly text: string
  /** DS records for the parent. */
  readonly ds: string
  /** Key signing key, as a DNSKEY record. */
  readonly key: string
}

/** Signs a zone with keys of its own, in `directory`, by BIND's tools. Signing again uses the same keys. */
export async function signZone(
  directory: string,
  { zone, text, algorithm, nsec3, args = [] }: SigningOptions,
): Promise<SignedZone> {
  mkdirSync(directory, { recursive: true })
  const isKeyed = readdirSync(directory).some((name) => name.endsWith('.key'))
  const size = algorithm.startsWith('RSA') ? ['-b', '2048'] : []
  const generate = ['-q', '-K', directory, '-a', algorithm, ...size]
  if (!isKeyed) {
    await start('dnssec-keygen', [...generate, '-f', 'KSK', zone])
    await start('dnssec-keygen', [...generate, zone])
  }
  writeFileSync(join(directory, 'zone'), text)
  const chain =
    nsec3 === undefined
      ? []
      : ['-3', nsec3.salt, '-H', String(nsec3.iterations), ...(nsec3.optOut ? ['-A'] : [])]
  const files = ['-K', directory, '-d', directory, '-f', join(directory, 'signed')]
  const options = ['-q', '-S', '-o', zone, ...files, ...chain, ...args]
  await start('dnssec-signzone', [...options, join(directory, 'zone')])
  const dsset = readdirSync(directory).find((name) => name.startsWith('dsset-'))!
  const keys = readdirSync(directory).filter((name) => name.endsWith('.key'))
  const key = keys
    .map((name) => readFileSync(join(directory, name), 'latin1'))
    .flatMap((file) => file.split('\n'))
    .find((line) => line.includes('DNSKEY 257'))!
  return {
    text: readFileSync(join(directory, 'signed'), 'latin1'),
    ds: readFileSync(join(directory, dsset), 'latin1'),
    key,
  }
}
