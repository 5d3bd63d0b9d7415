import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import { generatePrivateKey, signingKey } from '../../dns/dnssec/dnskey.ts'
import { keyTag } from '../../dns/dnssec/key-tag.ts'
import { printName } from '../../dns/name/name.ts'
import { keyId } from './key-name.ts'
import type { StoredKey } from './key-store.ts'
import type { KeyTimes } from './key-times.ts'
import type { PairTexts } from './pair-files.ts'
import { printPrivateText } from './private-text.ts'
import { flagsOf, type PublicText, printPublicText } from './public-text.ts'

/** With tags of 16 bits, more collisions in a row mean that something is wrong. */
const TRIES_MAX = 16

/** The store of a new key. */
export interface NewKeyStore {
  /** What messages call the store. */
  readonly place: string
  readonly clock: Clock
  /** Makes a private key; replaced by tests. */
  readonly generate?: typeof generatePrivateKey | undefined
  /** Stores a key. Resolves to false, and stores nothing, if the zone has, or had, another key with its tag. */
  readonly store: (key: StoredKey) => Promise<boolean>
}

/** What a new key is for. */
interface Wanted {
  readonly zone: Uint8Array
  readonly algorithm: number
  readonly flags: number
  /** Of RSA; undefined = the default. */
  readonly bits: number | undefined
}

/** Makes key pairs until one has a tag that is free, and stores it. @throws InputError. */
export async function createKey(
  { zone, algorithm, flags, bits }: Wanted,
  { place, clock, store, generate = generatePrivateKey }: NewKeyStore,
): Promise<StoredKey> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const privateKey = await generate(algorithm, bits)
    const { dnskey } = signingKey(privateKey, algorithm, flags)
    const now = Math.floor(clock.now() / 1000)
    const times = { Created: now, Publish: now, Activate: now }
    const key = storedKey({ zone, dnskey }, privateKey, times)
    if (await store(key)) return key
  }
  throw new InputError(undefined, `${place}: all tags of the zone's new keys are taken`)
}

/** Stores a key that another program made. @throws InputError. */
export async function importKey(
  key: StoredKey,
  { place, store }: Pick<NewKeyStore, 'place' | 'store'>,
): Promise<StoredKey> {
  if (await store(key)) return key
  const has = `${place} has, or had, a key of ${printName(key.zone)} with tag ${key.tag}`
  throw new InputError(undefined, `${has}; make another key`)
}

/** Returns a key with what follows from its DNSKEY. `privateKey`: undefined = another provider signs with it. */
export function storedKey(
  { zone, dnskey }: PublicText,
  privateKey: StoredKey['privateKey'],
  times: KeyTimes | undefined,
): StoredKey {
  const [flags, algorithm, tag] = [flagsOf(dnskey), dnskey[3]!, keyTag(dnskey)]
  const key = { id: keyId(zone, algorithm, tag), zone, flags, algorithm, tag, dnskey, privateKey }
  return times === undefined ? key : { ...key, times }
}

/** Returns the texts of a key in BIND's format. */
export function textsOf({ zone, dnskey, algorithm, privateKey, times = {} }: StoredKey): PairTexts {
  const privateText =
    privateKey === undefined ? undefined : printPrivateText({ algorithm, privateKey, times })
  return { publicText: printPublicText({ zone, dnskey }), privateText }
}
