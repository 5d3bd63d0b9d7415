import type { KeyObject } from 'node:crypto'
import { InputError } from '../../base/errors.ts'
import { nameKey, printName } from '../../dns/name/name.ts'
import { numberOf } from '../keys/follow-keys.ts'
import type { KeyDirectory } from '../keys/key-directory.ts'
import { fileNameOf, scanKeyId } from '../keys/key-name.ts'
import type { StoredKey } from '../keys/key-store.ts'
import type { KeyQuestion } from './key-question.ts'
import { composeKeyReply } from './key-reply.ts'
import { digestText, seal } from './seal.ts'
import { printSharedKeys } from './shared-keys.ts'

/** More does not fit into a message with its TSIG record. */
const TEXT_OCTETS_MAX = 60_000
/** Attempts to read keys and state as they are at one time. */
const TRIES_MAX = 5

/** What is sent to a server, and whether it gets keys or knows them. */
interface SharedReply {
  /** Rdata of a TXT record. */
  readonly rdata: Uint8Array
  readonly hasKeys: boolean
}

interface LoadedZone {
  readonly keys: StoredKey[]
  readonly removed: Set<string>
}

/** What a directory has, by zone. */
interface LoadedZones {
  readonly zones: ReadonlyMap<string, LoadedZone>
  readonly faults: readonly InputError[]
}

/** The keys of a directory, for servers that follow it. */
export class KeyShare {
  readonly #store: KeyDirectory
  readonly #stop: () => void
  #loaded: Promise<LoadedZones> | undefined
  /** What is shared of each zone. */
  readonly #texts = new Map<string, Promise<string>>()

  /** `store`: no other code changes keys through this object, so that it notices all changes. */
  constructor(store: KeyDirectory) {
    this.#store = store
    this.#stop = store.watch(() => {
      this.#loaded = undefined
      this.#texts.clear()
    })
  }

  stop(): void {
    this.#stop()
  }

  /** Answers a question of a server that has the secret. Rejects with InputError if keys are missing or invalid. */
  async answer(question: KeyQuestion, secret: KeyObject): Promise<SharedReply> {
    const { zone, nonce, digest } = question
    const text = await this.#textOf(zone)
    const hasKeys = Buffer.compare(digestText(text, secret, nonce), digest) !== 0
    const sealed = hasKeys ? seal(text, secret, contextOf(question)) : new Uint8Array(0)
    return { rdata: composeKeyReply(sealed), hasKeys }
  }

  async #textOf(zone: Uint8Array): Promise<string> {
    const key = nameKey(zone)
    const text = this.#texts.get(key) ?? this.#read(zone)
    this.#texts.set(key, text)
    try {
      return await text
    } catch (error) {
      this.#texts.delete(key)
      throw error
    }
  }

  async #read(zone: Uint8Array): Promise<string> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const state = await this.#store.readState(zone)
      if (state === undefined) break
      this.#loaded ??= this.#load()
      const { zones, faults } = await this.#loaded
      if (faults[0] !== undefined) throw faults[0]
      if ((await this.#store.readState(zone)) !== state) {
        this.#loaded = undefined
        continue
      }
      const name = fileNameOf(zone).toLowerCase()
      const { keys = [], removed = new Set<string>() } = zones.get(name) ?? {}
      const text = printSharedKeys({ zone, state, keys, removed })
      if (Buffer.byteLength(text) <= TEXT_OCTETS_MAX) return text
      const fix = 'delete old keys from the folder removed, in the directories of all servers'
      const message = `the keys of ${printName(zone)} do not fit into a reply; ${fix}`
      throw new InputError(undefined, message)
    }
    throw new InputError(undefined, `${printName(zone)} has no keys yet`)
  }

  async #load(): Promise<LoadedZones> {
    const { keys, faults } = await this.#store.load()
    if (faults.length > 0) return { zones: new Map(), faults }
    const zones = new Map<string, LoadedZone>()
    const zoneOf = (id: string): LoadedZone => {
      const name = scanKeyId(id)!.zone.toLowerCase()
      const zone = zones.get(name) ?? { keys: [], removed: new Set() }
      zones.set(name, zone)
      return zone
    }
    for (const key of keys) zoneOf(key.id).keys.push(key)
    try {
      for (const id of this.#store.removedIds()) zoneOf(id).removed.add(numberOf(id))
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      // The watch does not report that it ends.
      this.#loaded = undefined
      return { zones, faults: [error] }
    }
    return { zones, faults: [] }
  }
}

/** What a sealed reply is bound to. */
export function contextOf({ zone, nonce }: Pick<KeyQuestion, 'zone' | 'nonce'>): Uint8Array {
  return Buffer.concat([nonce, zone])
}
