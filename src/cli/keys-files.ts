import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { systemTimers } from '../base/timers.ts'
import { printAlgorithm } from '../dns/dnssec/algorithms.ts'
import { composeDnskey, FLAGS_KSK, FLAGS_ZSK } from '../dns/dnssec/dnskey.ts'
import { equalNames, printName } from '../dns/name/name.ts'
import { KeyDirectory } from '../signing/keys/key-directory.ts'
import { readKeyFile, readPublicKey } from '../signing/keys/key-file.ts'
import type { ImportStore, StoredKey } from '../signing/keys/key-store.ts'
import { algorithmOfKey, isPem, printPem, scanPem } from '../signing/keys/pem.ts'
import {
  type PrivateText,
  printPrivateText,
  scanPrivateText,
} from '../signing/keys/private-text.ts'
import { readPrivateFile } from '../signing/keys/protected-file.ts'
import { isKeySigning, type PublicText, printDnskeyRecord } from '../signing/keys/public-text.ts'
import type { KeyRole } from '../signing/rolls/policy.ts'
import type { KeysArgs } from './keys-args.ts'
import type { Output } from './output.ts'

/** Returns the flags of a new key. A KSK and a CSK have the same: a CSK is one because the zone has no ZSK. */
export function flagsOfRole(role: KeyRole): number {
  return role === 'zsk' ? FLAGS_ZSK : FLAGS_KSK
}

/** `keys import`. @throws InputError. */
export async function importKey(args: KeysArgs, store: ImportStore): Promise<StoredKey> {
  const file = resolve(args.subject)
  if (args.isPublic) {
    const key = readPublicKey(file)
    checkPublic(key, file, args)
    return store.add(key, undefined, {})
  }
  const base = file.replace(/\.(key|private)$/, '')
  if (existsSync(`${base}.key`)) {
    const pair = readKeyFile(base)
    checkPublic(pair, `${base}.key`, args)
    return store.add(pair, pair.privateKey, pair.times)
  }
  const key = readPrivate(file, args)
  if (args.role === undefined)
    fail(`${file} does not say what the key is for; add --csk, --ksk or --zsk`)
  const dnskey = composeDnskey(key.privateKey, key.algorithm, flagsOfRole(args.role))
  return store.add({ zone: args.zone!, dnskey }, key.privateKey, key.times)
}

/** Reads a private key without its public file, in BIND's format or PEM. @throws InputError. */
function readPrivate(file: string, { algorithm }: KeysArgs): PrivateText {
  const text = readPrivateFile(file)
  if (!isPem(text)) {
    const key = scanPrivateText(text, file)
    if (algorithm !== undefined && algorithm !== key.algorithm)
      fail(`${file} has a key of ${printAlgorithm(key.algorithm)}; leave out --algorithm`)
    return key
  }
  const privateKey = scanPem(text, file)
  const found = algorithm ?? algorithmOfKey(privateKey)
  if (found === undefined) {
    const kinds = 'an RSA, P-256, P-384 or Ed25519 key'
    fail(`${file} has a key of the kind ${privateKey.asymmetricKeyType}; it must be ${kinds}`)
  }
  return { privateKey, algorithm: found, times: {} }
}

function checkPublic({ zone, dnskey }: PublicText, file: string, args: KeysArgs): void {
  if (!equalNames(zone, args.zone!))
    fail(`${file} has a key of ${printName(zone)}, not of ${printName(args.zone!)}`)
  const { role, algorithm } = args
  if (algorithm !== undefined && algorithm !== dnskey[3])
    fail(`${file} has a key of ${printAlgorithm(dnskey[3]!)}; leave out --algorithm`)
  const isSep = isKeySigning((dnskey[0]! << 8) | dnskey[1]!)
  if (role !== undefined && isSep !== isKeySigning(flagsOfRole(role)))
    fail(`${file} has a ${isSep ? 'key-signing' : 'zone-signing'} key; leave out --${role}`)
}

/** `keys export`. Resolves to the exit code. @throws InputError. */
export async function exportKey(
  key: StoredKey,
  { to, isPem, isPublic }: KeysArgs,
  { print }: Output,
): Promise<number> {
  const { privateKey, algorithm, times = {} } = key
  if (isPublic) {
    if (isPem || to !== undefined)
      fail('--public prints the DNSKEY record; leave out --pem and --to')
    print(printDnskeyRecord(key))
    return 0
  }
  if (privateKey === undefined)
    fail(`${key.id} is a key of another provider: only its public key is stored; add --public`)
  if (to !== undefined) {
    if (isPem) fail("--to writes files in BIND's format; leave out --pem")
    const folder = new KeyDirectory({ path: resolve(to), clock: systemClock, timers: systemTimers })
    await folder.add(key, privateKey, times)
    print(resolve(to, key.id))
    return 0
  }
  const text = isPem ? printPem(privateKey) : printPrivateText({ privateKey, algorithm, times })
  for (const line of text.trimEnd().split('\n')) print(line)
  return 0
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}
