import { InputError } from '../../base/errors.ts'
import { equalNames, printName } from '../../dns/name/name.ts'
import type { FollowedKeys } from '../keys/follow-keys.ts'
import { checkedPublic, pairOf } from '../keys/key-file.ts'
import type { StoredKey } from '../keys/key-store.ts'
import { storedKey, textsOf } from '../keys/new-key.ts'
import type { PairTexts } from '../keys/pair-files.ts'
import { scanPrivateText } from '../keys/private-text.ts'
import { scanRollState } from '../rolls/roll-state.ts'

/** Returns the keys of a zone as a text. It contains the private keys. */
export function printSharedKeys({ state, keys, removed }: FollowedKeys): string {
  return JSON.stringify({ state, keys: keys.map(textsOf), removed: [...removed] })
}

/** Scans what `printSharedKeys` returned. `place`: for messages. @throws InputError. */
export function scanSharedKeys(zone: Uint8Array, text: string, place: string): FollowedKeys {
  const value = parse(text)
  if (!isShared(value)) throw new InputError(undefined, `${place}: the keys have an unknown form`)
  scanRollState(value.state)
  const keys = value.keys.map((texts) => scanPair(texts, place))
  const foreign = keys.find((key) => !equalNames(key.zone, zone))
  if (foreign !== undefined) {
    const names = `${foreign.id}, which is not a key of ${printName(zone)}`
    throw new InputError(undefined, `${place}: the server sent ${names}`)
  }
  return { zone, state: value.state, keys, removed: new Set(value.removed) }
}

interface Shared {
  readonly state: string
  readonly keys: readonly PairTexts[]
  readonly removed: readonly string[]
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isShared(value: unknown): value is Shared {
  if (typeof value !== 'object' || value === null) return false
  const { state, keys, removed } = value as Partial<Record<keyof Shared, unknown>>
  const areTexts = Array.isArray(removed) && removed.every((one) => typeof one === 'string')
  return typeof state === 'string' && areTexts && Array.isArray(keys) && keys.every(isPair)
}

function isPair(value: unknown): value is PairTexts {
  if (typeof value !== 'object' || value === null) return false
  const { publicText, privateText } = value as Partial<Record<keyof PairTexts, unknown>>
  return typeof publicText === 'string' && ['string', 'undefined'].includes(typeof privateText)
}

function scanPair({ publicText, privateText }: PairTexts, place: string): StoredKey {
  const publicKey = checkedPublic(publicText, place)
  if (privateText === undefined) return storedKey(publicKey, undefined, undefined)
  const { privateKey, times } = pairOf(publicKey, scanPrivateText(privateText, place), place)
  return storedKey(publicKey, privateKey, times)
}
