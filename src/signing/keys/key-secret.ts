import type { Clock } from '../../base/clock.ts'
import { InputError } from '../../base/errors.ts'
import type { Timers } from '../../base/timers.ts'
import type { generatePrivateKey } from '../../dns/dnssec/dnskey.ts'
import { keyTag } from '../../dns/dnssec/key-tag.ts'
import { equalNames } from '../../dns/name/name.ts'
import {
  type ApiClient,
  ApiError,
  type ApiObject,
  isObject,
  type JsonValue,
  textOf,
} from '../../kube/api.ts'
import { isConflict, type ObjectRef, Objects } from '../../kube/objects.ts'
import { checkedPublic, pairOf } from './key-file.ts'
import { keyId } from './key-name.ts'
import type { ImportStore, LoadedKeys, StoredKey } from './key-store.ts'
import type { KeyTimes } from './key-times.ts'
import { createKey, importKey, type NewKeyStore, storedKey, textsOf } from './new-key.ts'
import { scanPrivateText } from './private-text.ts'
import type { PublicText } from './public-text.ts'

const SECRETS = { group: '', version: 'v1', plural: 'secrets' }
/** Attempts to write while other processes write. */
const TRIES_MAX = 16
/** Interval of the checks whether another process changed the Secret. */
const CHECK_MS = 10_000
/** Prefix of keys that are out of use. */
const REMOVED = 'removed.'

interface KeySecretParts {
  readonly api: ApiClient
  readonly namespace: string
  readonly name: string
  readonly clock: Clock
  readonly timers: Timers
  /** Makes a private key; replaced by tests. */
  readonly generate?: typeof generatePrivateKey
}

/** Members of the data of a Secret, decoded. */
type Members = ReadonlyMap<string, string>

/** A version of the Secret. */
interface Version {
  readonly object: ApiObject
  readonly resourceVersion: string
  readonly members: Members
}

/**
 * Keys in the data of a Kubernetes Secret, which must exist: `<id>.key` and `<id>.private` in BIND's format, and
 * `<zone>.state`, with names that data of a Secret may have. Several processes may use it: a write fails if another one
 * was faster, and is tried again on the new version.
 */
export class KeySecret implements ImportStore {
  readonly #parts: KeySecretParts
  readonly #place: string
  readonly #ref: ObjectRef
  readonly #objects: Objects
  /** The version that `load` returned or the listener was called for, with our own changes to it; '' = none. */
  #known = ''

  constructor(parts: KeySecretParts) {
    const { api, timers, namespace, name } = parts
    this.#parts = parts
    this.#place = `Secret ${namespace}/${name}`
    this.#ref = { resource: SECRETS, namespace, name }
    this.#objects = new Objects({ api, timers, fieldManager: 'sextant-keys' })
  }

  async load(): Promise<LoadedKeys> {
    try {
      const { resourceVersion, members } = await this.#read()
      this.#known = resourceVersion
      return this.#keysOf(members)
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      this.#known = ''
      return { keys: [], faults: [error] }
    }
  }

  create(zone: Uint8Array, algorithm: number, flags: number, bits?: number): Promise<StoredKey> {
    return createKey({ zone, algorithm, flags, bits }, this.#new)
  }

  add(key: PublicText, privateKey: StoredKey['privateKey'], times: KeyTimes): Promise<StoredKey> {
    return importKey(storedKey(key, privateKey, times), this.#new)
  }

  get #new(): NewKeyStore {
    const { clock, generate } = this.#parts
    const store = (key: StoredKey): Promise<boolean> =>
      this.#edit((members) => {
        if (hasTag(members, key.zone, key.tag)) return undefined
        const { publicText, privateText } = textsOf(key)
        const base = memberName(key.id)
        const next = new Map([...members, [`${base}.key`, publicText]])
        if (privateText !== undefined) next.set(`${base}.private`, privateText)
        return next
      })
    return { place: this.#place, clock, generate, store }
  }

  async readState(zone: Uint8Array): Promise<string | undefined> {
    return (await this.#read()).members.get(stateName(zone))
  }

  async editState(
    zone: Uint8Array,
    edit: (text: string | undefined) => string | undefined,
  ): Promise<void> {
    const name = stateName(zone)
    await this.#edit((members) => {
      const before = members.get(name)
      const text = edit(before)
      if (text === undefined || text === before) return undefined
      return new Map([...members, [name, text]])
    })
  }

  async retire(id: string): Promise<void> {
    const base = memberName(id)
    await this.#edit((members) => {
      if (!members.has(`${base}.key`)) {
        // It may be retired already, by a process that was killed before it noted that.
        if (members.has(`${REMOVED}${base}.key`)) return undefined
        throw new InputError(undefined, `${this.#place} has no key ${id}`)
      }
      const isOfKey = (name: string): boolean =>
        name === `${base}.key` || name === `${base}.private`
      return new Map(
        [...members].map(([name, text]) => [isOfKey(name) ? `${REMOVED}${name}` : name, text]),
      )
    })
  }

  /**
   * The Secret is read now and then: a watch would need the right to list Secrets. A Secret that can't be read any more
   * is a change, too.
   */
  watch(listener: () => void): () => void {
    let isBusy = false
    return this.#parts.timers.every(CHECK_MS, () => {
      if (isBusy) return
      isBusy = true
      void this.#readVersion()
        .then((version) => {
          if (version === this.#known) return
          this.#known = version
          listener()
        })
        .finally(() => {
          isBusy = false
        })
    })
  }

  /** '' = the Secret can't be read. */
  async #readVersion(): Promise<string> {
    try {
      return (await this.#read()).resourceVersion
    } catch (error) {
      if (!(error instanceof InputError)) throw error
      return ''
    }
  }

  #keysOf(members: Members): LoadedKeys {
    const keys = new Map<string, StoredKey>()
    const faults: InputError[] = []
    for (const [name, text] of members) {
      if (name.startsWith(REMOVED) || !name.endsWith('.key')) continue
      try {
        const key = this.#keyOf(name, text, members)
        if (keys.has(key.id))
          throw this.#fault(name, `${key.id} is there twice; remove one of the two`)
        keys.set(key.id, key)
      } catch (error) {
        if (!(error instanceof InputError)) throw error
        faults.push(error)
      }
    }
    for (const name of members.keys()) {
      if (name.startsWith(REMOVED) || !name.endsWith('.private')) continue
      const publicName = `${name.slice(0, -'.private'.length)}.key`
      if (!members.has(publicName))
        faults.push(this.#fault(name, `${publicName} is missing; restore it`))
    }
    return { keys: [...keys.values()], faults }
  }

  #keyOf(name: string, text: string, members: Members): StoredKey {
    const publicKey = checkedPublic(text, `${this.#place}, ${name}`)
    const privateName = `${name.slice(0, -'.key'.length)}.private`
    const privateText = members.get(privateName)
    if (privateText === undefined) return storedKey(publicKey, undefined, undefined)
    const file = `${this.#place}, ${privateName}`
    const { privateKey, times } = pairOf(publicKey, scanPrivateText(privateText, file), file)
    return storedKey(publicKey, privateKey, times)
  }

  #fault(name: string, text: string): InputError {
    return new InputError(undefined, `${this.#place}, ${name}: ${text}`)
  }

  /** Replaces the members. `edit` returns undefined to leave them. True = it did not. */
  async #edit(edit: (members: Members) => Members | undefined): Promise<boolean> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const { object, resourceVersion, members } = await this.#read()
      const next = edit(members)
      if (next === undefined) return false
      try {
        const written = await this.#objects.replace(this.#ref, { ...object, data: encode(next) })
        // Else the keys of another process are not loaded yet.
        if (this.#known === resourceVersion)
          this.#known = textOf(written.metadata, 'resourceVersion')
        return true
      } catch (error) {
        if (!isConflict(error)) throw this.#explain(error, 'change')
      }
    }
    throw new InputError(undefined, `${this.#place}: other processes change it all the time`)
  }

  async #read(): Promise<Version> {
    const object = await this.#get()
    if (object === undefined) {
      const command = `kubectl create secret generic -n ${this.#ref.namespace} ${this.#ref.name}`
      throw new InputError(undefined, `${this.#place} does not exist; create it: ${command}`)
    }
    const resourceVersion = textOf(object.metadata, 'resourceVersion')
    return { object, resourceVersion, members: decode(object.data) }
  }

  async #get(): Promise<ApiObject | undefined> {
    try {
      return await this.#objects.get(this.#ref)
    } catch (error) {
      throw this.#explain(error, 'read')
    }
  }

  #explain(error: unknown, verb: 'read' | 'change'): unknown {
    if (!(error instanceof ApiError)) return error
    const { namespace, name } = this.#ref
    const rule = `{apiGroups: [""], resources: [secrets], resourceNames: [${name}], verbs: [get, update]}`
    const fix = error.status === 403 ? `; add the rule ${rule} to a Role in ${namespace}` : ''
    return new InputError(undefined, `can't ${verb} ${this.#place}: ${error.message}${fix}`, error)
  }
}

/** True if the store may have no such fault soon, without a change by its owner: the API server does not answer. */
export function isTemporaryFault({ cause }: InputError): boolean {
  return cause instanceof ApiError && cause.status !== 403
}

function decode(data: JsonValue | undefined): Map<string, string> {
  const members = new Map<string, string>()
  if (data === undefined || !isObject(data)) return members
  for (const name of Object.keys(data)) {
    members.set(name, Buffer.from(textOf(data, name), 'base64').toString('utf8'))
  }
  return members
}

function encode(members: Members): ApiObject {
  return Object.fromEntries(
    [...members].map(([name, text]) => [name, Buffer.from(text, 'utf8').toString('base64')]),
  )
}

/** Data of a Secret have names of letters, digits, `-`, `_` and `.`. */
function memberName(id: string): string {
  return id.replaceAll('+', '_').replaceAll('%', '-')
}

function stateName(zone: Uint8Array): string {
  const id = memberName(keyId(zone, 0, 0))
  return `rolls-${id.slice(1, id.indexOf('_000_'))}state`
}

/** A retired key counts too: signatures with it may be in caches. */
function hasTag(members: Members, zone: Uint8Array, tag: number): boolean {
  for (const [name, text] of members) {
    if (!name.endsWith('.key')) continue
    try {
      const key = checkedPublic(text, name)
      if (keyTag(key.dnskey) === tag && equalNames(key.zone, zone)) return true
    } catch (error) {
      // `load` reports it.
      if (!(error instanceof InputError)) throw error
    }
  }
  return false
}
