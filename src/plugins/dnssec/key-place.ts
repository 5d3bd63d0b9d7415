import { InputError } from '../../base/errors.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KeyStore } from '../../signing/keys/key-store.ts'
import type { DnssecOptions, KeyOrigin } from './options.ts'

/** A place whose keys are made and rolled. */
export type ManagedOrigin = Exclude<KeyOrigin, { kind: 'files' }>
type DirectoryOrigin = Extract<KeyOrigin, { kind: 'directory' }>
type SecretOrigin = Extract<KeyOrigin, { kind: 'secret' }>

/** Which server changes the keys of a place. */
interface KeyLeader {
  /** What `fault` is about. */
  readonly what: 'key lease' | 'key server'
  /** False = another server changes the keys, and this one follows. */
  readonly mayChange: boolean
  /** What prevents that this server follows; '' = nothing. */
  readonly fault: string
  /** Which server changes the keys. */
  readonly text: string
  /** Calls `listener` when there may be something to do, until the returned function is called. */
  subscribe(listener: () => void): () => void
}

/** A place that is open, on the control thread. */
export interface OpenKeyStore {
  readonly store: KeyStore
  /** Undefined = every server may change the keys. */
  readonly leader: KeyLeader | undefined
  /** True: with these faults of the store, the server starts without keys, because they may come soon. */
  mayWait(faults: readonly InputError[]): boolean
  close(): Promise<void>
}

/** Returns the place as errors name it. */
export function printPlace(origin: ManagedOrigin): string {
  return origin.kind === 'directory' ? origin.path : `Secret ${origin.namespace}/${origin.name}`
}

/** Returns the same text for the same place. */
export function placeKey(origin: ManagedOrigin): string {
  const { position: _, ...place } = origin
  return JSON.stringify(place)
}

/** `zones`: returns those that need keys now. @throws InputError. */
export async function openPlace(
  origin: ManagedOrigin,
  options: DnssecOptions,
  zones: () => readonly Uint8Array[],
  c: SetupContext,
): Promise<OpenKeyStore> {
  if (origin.kind === 'secret') return openSecret(origin, c)
  if (options.from !== undefined) {
    const { openFollowed } = await import('./followed-keys.ts')
    return openFollowed(origin.path, options, zones, c)
  }
  return {
    store: await openDirectory(origin, options, c),
    leader: undefined,
    mayWait: () => false,
    close: async () => {},
  }
}

/** Returns the store for `sextant check`; undefined = only the server can read it. @throws InputError. */
export async function openToRead(
  origin: ManagedOrigin,
  options: DnssecOptions,
  isOffline: boolean,
  c: SetupContext,
): Promise<KeyStore | undefined> {
  if (origin.kind === 'directory') return openDirectory(origin, options, c)
  // The service account exists only in the Pod.
  if (isOffline || origin.kubeconfig === '') return undefined
  const { openApi } = await import('../../kube/open-api.ts')
  const { KeySecret } = await import('../../signing/keys/key-secret.ts')
  const { api } = await openApi(origin)
  const { clock, timers } = c
  return new KeySecret({ ...origin, api, clock, timers })
}

async function openDirectory(
  { path }: DirectoryOrigin,
  { from }: DnssecOptions,
  { clock, timers }: SetupContext,
): Promise<KeyStore> {
  const { KeyDirectory } = await import('../../signing/keys/key-directory.ts')
  const { followedServers, followFault } = await import('../../signing/keys/follow-keys.ts')
  const servers = from === undefined ? followedServers(path) : ''
  if (servers !== '') throw new InputError(undefined, followFault(path, servers))
  return new KeyDirectory({ path, clock, timers })
}

async function openSecret(origin: SecretOrigin, c: SetupContext): Promise<OpenKeyStore> {
  const { hostname } = await import('node:os')
  const { randomUUID } = await import('node:crypto')
  const { Random } = await import('../../base/random.ts')
  const { acquireAt } = await import('../../kube/cluster-access.ts')
  const { KeyLease } = await import('../../signing/keys/key-lease.ts')
  const { isTemporaryFault, KeySecret } = await import('../../signing/keys/key-secret.ts')
  const { namespace, name } = origin
  const { clock, timers, log } = c
  const place = { ...origin, directive: 'dnssec', endpoint: '', tls: undefined }
  const { item: lease, release } = await acquireAt(place, c, {
    type: KeyLease,
    options: [namespace, name],
    create: (api) => {
      const identity = `${hostname()}_${randomUUID()}`
      const random = new Random(Math.trunc(c.random() * 2 ** 32))
      return new KeyLease({ api, namespace, name, identity, clock, timers, random, log })
    },
  })
  return {
    store: new KeySecret({ api: lease.api, namespace, name, clock, timers }),
    leader: {
      what: 'key lease',
      get mayChange() {
        return lease.isHeld
      },
      get fault() {
        return lease.fault
      },
      get text() {
        return lease.holderText
      },
      subscribe: (listener) => lease.onAcquire(listener),
    },
    mayWait: (faults) => faults.every(isTemporaryFault),
    close: async () => {
      release()
      await lease.closed
    },
  }
}
