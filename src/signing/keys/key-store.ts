import type { KeyObject } from 'node:crypto'
import type { InputError } from '../../base/errors.ts'
import type { KeyTimes } from './key-times.ts'
import type { PublicText } from './public-text.ts'

/** A key of a zone. */
export interface StoredKey {
  /** As BIND names its files: `Kexample.org.+013+12345`. */
  readonly id: string
  /** Apex, lower-case wire form. */
  readonly zone: Uint8Array
  readonly flags: number
  readonly algorithm: number
  readonly tag: number
  /** DNSKEY rdata. */
  readonly dnskey: Uint8Array
  /** Undefined = only the public key is stored: another provider of the zone signs with it (RFC 8901). */
  readonly privateKey: KeyObject | undefined
  /** When the key was made, published and so on, if the store knows; a program that made the key set them. */
  readonly times?: KeyTimes
}

/** What a key store has. */
export interface LoadedKeys {
  readonly keys: readonly StoredKey[]
  /** Each names a key and the reason why it is not among `keys`. */
  readonly faults: readonly InputError[]
}

/** Stores the keys of zones, and the state of their rolls. Its methods reject with InputError if storing fails. */
export interface KeyStore {
  /** Returns the keys of all zones. */
  load(): Promise<LoadedKeys>
  /** Makes and stores a key pair, whose tag no other key of the zone has. `bits`: of RSA. */
  create(zone: Uint8Array, algorithm: number, flags: number, bits?: number): Promise<StoredKey>
  /** Returns the state of the zone's rolls; undefined = none yet. */
  readState(zone: Uint8Array): Promise<string | undefined>
  /**
   * Replaces the state by what `edit` makes of it, with no write of another process in between. `edit` may run more
   * than once; if it returns undefined or throws, nothing is written.
   */
  editState(zone: Uint8Array, edit: (text: string | undefined) => string | undefined): Promise<void>
  /** Moves a key out of use; it is not deleted. */
  retire(id: string): Promise<void>
  /** Calls `listener` after another process changed something, until the returned function is called. */
  watch(listener: () => void): () => void
}

/** A key store that also takes keys which other programs made. */
export interface ImportStore extends KeyStore {
  /** Rejects with InputError if a key of the zone has, or had, the tag. `privateKey`: as in `StoredKey`. */
  add(key: PublicText, privateKey: StoredKey['privateKey'], times: KeyTimes): Promise<StoredKey>
}
