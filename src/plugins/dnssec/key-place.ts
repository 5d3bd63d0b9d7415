import type { InputError } from '../../base/errors.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import type { KeyLease } from '../../signing/keys/key-lease.ts'
import type { KeyStore } from '../../signing/keys/key-store.ts'
import type { KeyOrigin } from './options.ts'

/** A place whose keys are made and rolled. */
export type ManagedOrigin = Exclude<KeyOrigin, { kind: 'files' }>
type SecretOrigin = Extract<KeyOrigin, { kind: 'secret' }>

/** A place that is open, on the control thread. */
export interface OpenKeyStore {
  readonly store: KeyStore
  /** Only its holder changes the keys; undefined = every server may. */
  readonly lease: KeyLease | undefined
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

/** @throws InputError. */
export async function openPlace(origin: ManagedOrigin, c: SetupContext): Promise<OpenKeyStore> {
  if (origin.kind === 'secret') return openSecret(origin, c)
  return {
    store: await openDirectory(origin.path, c),
    lease: undefined,
    mayWait: () => false,
    close: async () => {},
  }
}

/** Returns the store for `sextant check`; undefined = only the server can read it. @throws InputError. */
export async function openToRead(
  origin: ManagedOrigin,
  c: SetupContext,
  isOffline: boolean,
): Promise<KeyStore | undefined> {
  if (origin.kind === 'directory') return openDirectory(origin.path, c)
  // The service account exists only in the Pod.
  if (isOffline || origin.kubeconfig === '') return undefined
  const { openApi } = await import('../../kube/open-api.ts')
  const { KeySecret } = await import('../../signing/keys/key-secret.ts')
  const { api } = await openApi(origin)
  const { clock, timers } = c
  return new KeySecret({ ...origin, api, clock, timers })
}

async function openDirectory(path: string, { clock, timers }: SetupContext): Promise<KeyStore> {
  const { KeyDirectory } = await import('../../signing/keys/key-directory.ts')
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
    lease,
    mayWait: (faults) => faults.every(isTemporaryFault),
    close: async () => {
      release()
      await lease.closed
    },
  }
}
