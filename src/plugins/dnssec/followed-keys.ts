import { InputError } from '../../base/errors.ts'
import { ask } from '../../client/ask.ts'
import { equalNames } from '../../dns/name/name.ts'
import { TSIG_KEYS } from '../../dns/tsig/key.ts'
import { ownAddress } from '../../plugin/arguments/endpoint.ts'
import type { SetupContext } from '../../plugin/directive.ts'
import { followedServers } from '../../signing/keys/follow-keys.ts'
import { KeyDirectory } from '../../signing/keys/key-directory.ts'
import { askKeys } from '../../signing/shared/ask-keys.ts'
import { KeyFollower, printServers } from '../../signing/shared/key-follower.ts'
import type { OpenKeyStore } from './key-place.ts'
import type { DnssecOptions, FollowedServers } from './options.ts'
import { tsigFaults } from './tsig-faults.ts'

/** Opens a directory whose keys are those of other servers. @throws InputError. */
export async function openFollowed(
  path: string,
  options: DnssecOptions,
  zones: () => readonly Uint8Array[],
  c: SetupContext,
): Promise<OpenKeyStore> {
  const { from, policy } = options
  const { position, servers, keyName } = from!
  const [fault] = tsigFaults(options, c.block)
  if (fault !== undefined) throw fault
  const { block, clock, timers, log, metrics, random } = c
  const store = new KeyDirectory({ path, clock, timers, follows: printServers(servers) })
  const follower = new KeyFollower({
    servers,
    sourceFor: ({ host }) => ownAddress(host, block),
    key: block.shared.acquire(TSIG_KEYS).find(keyName)!,
    zones,
    store,
    ...{ clock, timers, log, metrics, random },
    delaySeconds: policy.zonePropagationSeconds,
  })
  if (followedServers(path) === '') await confirm(store, follower, { zones: zones(), position })
  follower.start()
  return {
    store,
    leader: {
      what: 'key server',
      mayChange: false,
      get fault() {
        return follower.fault
      },
      text: `the keys come from ${follower.serversText}`,
      subscribe: (listener) => follower.subscribe(listener),
    },
    mayWait: (faults) => faults.length === 0,
    close: () => follower.stop(),
  }
}

/** This server made the keys before, or copied them: it does not sign with them unless the servers have them. */
async function confirm(
  store: KeyDirectory,
  follower: KeyFollower,
  { zones, position }: { zones: readonly Uint8Array[] } & Pick<FollowedServers, 'position'>,
): Promise<void> {
  const { keys } = await store.load()
  if (!keys.some((key) => zones.some((zone) => equalNames(zone, key.zone)))) return
  const fault = await follower.followOnce()
  if (fault === '') return
  const effect = 'this server does not sign with keys that the server of from may lack'
  throw new InputError(position, `${fault}; ${effect}`)
}

/** Asks the servers of `from`, and returns why they send no keys. Call it once `tsig` has its keys. */
export async function askServers(
  { from, zones }: Pick<DnssecOptions, 'from' | 'zones'>,
  { block }: SetupContext,
): Promise<InputError[]> {
  if (from === undefined) return []
  const key = block.shared.acquire(TSIG_KEYS).find(from.keyName)!
  const faults: InputError[] = []
  for (const server of from.servers) {
    const source = ownAddress(server.host, block)
    for (const zone of zones) {
      const answered = await askKeys({ zone, server, source, key, held: '' }, ask)
      if (answered.kind !== 'failed') continue
      faults.push(new InputError(from.position, answered.reason))
      break
    }
  }
  return faults
}
