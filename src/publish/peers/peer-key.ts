import { createHash } from 'node:crypto'
import { InputError } from '../../base/errors.ts'
import { isReadableByOthers } from '../../base/stat.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import { HMAC_SHA256, scanAlgorithm } from '../../dns/tsig/algorithm.ts'
import { createTsigKey, type TsigKey } from '../../dns/tsig/key.ts'
import { type KeyConfig, readKeyFile } from '../../dns/tsig/key-file.ts'
import type { KeyPlace, PeeringOptions } from '../options.ts'

/** The key that is shared with peers. */
export interface PeerKey {
  readonly key: TsigKey
  /** Differs between keys, and does not reveal the secret. */
  readonly digest: string
}

/** Reads the key of that name from its file. Throws InputError. */
export function readPeerKey(place: KeyPlace): PeerKey {
  const { name, algorithm, secret } = findKey(place)
  const hash = createHash('sha256').update(name).update(`\0${algorithm}\0`).update(secret)
  const key = createTsigKey(name, scanAlgorithm(algorithm) ?? HMAC_SHA256, secret)
  return { key, digest: hash.digest('hex') }
}

function findKey({ name, path, position }: KeyPlace): KeyConfig {
  const found = readKeyFile(path, position).find((key) => equalNames(key.name, name))
  if (found !== undefined) return found
  throw new InputError(position, `key ${printName(name)} is missing in ${path}`)
}

/** Returns the faults of the key; warns of a key file that all users can read. */
export function checkKey(
  place: KeyPlace,
  warn: (warning: InputError) => void,
): readonly InputError[] {
  try {
    findKey(place)
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return error.all()
  }
  if (isReadableByOthers(place.path)) {
    const message = `any user of this machine can read the secrets in ${place.path}; chmod o-r it`
    warn(new InputError(place.position, message))
  }
  return []
}

/** Returns a warning if no key protects the answers of peers; undefined if there is a key, or no peer. */
export function findUnsigned({ peers, key, position }: PeeringOptions): InputError | undefined {
  if (peers.length === 0 || key !== undefined) return undefined
  const text =
    'peer without tsig: any host that can forge packets can pose as a peer; share a key with the peers, `tsig NAME FILE`'
  return new InputError(position, text)
}
