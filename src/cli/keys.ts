import { resolve } from 'node:path'
import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { systemTimers } from '../base/timers.ts'
import { Algorithm, printAlgorithm } from '../dns/dnssec/algorithms.ts'
import { compareNames, equalNames, printName } from '../dns/name/name.ts'
import { KeyDirectory } from '../signing/keys/key-directory.ts'
import type { LoadedKeys, StoredKey } from '../signing/keys/key-store.ts'
import { isKeySigning } from '../signing/keys/public-text.ts'
import type { KeyRole } from '../signing/rolls/policy.ts'
import { printData } from './data-format.ts'
import { type KeysArgs, scanKeysArgs } from './keys-args.ts'
import { printDs } from './keys-ds.ts'
import { exportKey, flagsOfRole, importKey } from './keys-files.ts'
import { directoryOfCorefile } from './keys-place.ts'
import type { Output } from './output.ts'
import { tableOf } from './table.ts'
import type { Line } from './tones.ts'

/** What an action gets. */
interface KeysTask {
  readonly args: KeysArgs
  readonly store: KeyDirectory
  readonly output: Output
}

/** Resolves to the exit code. @throws InputError. */
type RunAction = (task: KeysTask) => Promise<number>

const ACTIONS: Readonly<Record<KeysArgs['action'], RunAction>> = {
  list: listKeys,
  generate: generateKey,
  import: async (task) => printNew(await importKey(task.args, task.store), task),
  export: async ({ args, store, output }) => {
    const { keys } = await store.load()
    return exportKey(findKey(args, keys), args, output)
  },
  ds: async ({ args, store, output }) => {
    const { keys, faults } = await store.load()
    for (const fault of faults) output.printError(fault.print())
    return printDs(keysOf(args.zone, keys), args, output)
  },
}

/** `sextant keys ACTION`: the keys of signed zones. Resolves to the exit code. */
export async function runKeys(argv: readonly string[], output: Output): Promise<number> {
  try {
    const args = scanKeysArgs(argv)
    const { directory, conf } = args
    const path = directory === undefined ? directoryOfCorefile(conf) : resolve(directory)
    const store = new KeyDirectory({ path, clock: systemClock, timers: systemTimers })
    return await ACTIONS[args.action]({ args, store, output })
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const fault of error.all()) output.printError(fault.print())
    return 1
  }
}

async function listKeys(task: KeysTask): Promise<number> {
  const { args, store, output } = task
  const { keys, faults } = await store.load()
  printKeys(keysOf(args.zone, keys), keys, task)
  for (const fault of faults) output.printError(fault.print())
  return faults.length === 0 ? 0 : 1
}

async function generateKey(task: KeysTask): Promise<number> {
  const { args, store } = task
  const { algorithm = Algorithm.EcdsaP256, bits } = args
  const key = await store.create(args.zone!, algorithm, flagsOfRole(args.role ?? 'csk'), bits)
  return printNew(key, task)
}

/** The keys of a zone; undefined = of all zones. */
function keysOf(zone: Uint8Array | undefined, keys: LoadedKeys['keys']): readonly StoredKey[] {
  return keys
    .filter((key) => zone === undefined || equalNames(key.zone, zone))
    .toSorted((a, b) => compareNames(a.zone, b.zone) || b.flags - a.flags || a.tag - b.tag)
}

/** Returns the key that a tag or an id names. @throws InputError. */
function findKey({ zone, subject }: KeysArgs, keys: LoadedKeys['keys']): StoredKey {
  const found = keysOf(zone, keys).filter(({ id, tag }) => {
    return id === subject.replace(/\.(?:key|private)$/, '') || String(tag) === subject
  })
  const [key, ...others] = found
  const name = printName(zone!)
  if (key === undefined) throw new InputError(undefined, `${name} has no key ${subject}`)
  if (others.length === 0) return key
  const ids = found.map(({ id }) => id).join(', ')
  throw new InputError(
    undefined,
    `${name} has several keys with tag ${subject}; choose one: ${ids}`,
  )
}

async function printNew(key: StoredKey, task: KeysTask): Promise<number> {
  const { keys } = await task.store.load()
  printKeys([key], keys, task)
  return 0
}

function printKeys(
  keys: readonly StoredKey[],
  all: readonly StoredKey[],
  { args, output }: KeysTask,
): void {
  const rows = keys.map((key) => ({
    zone: printName(key.zone),
    id: key.id,
    role: roleOf(key, all),
    algorithm: printAlgorithm(key.algorithm),
    tag: key.tag,
    isPrivate: key.privateKey !== undefined,
  }))
  printData(output, args.format, {
    data: () => rows,
    table: (isWide): Line[] =>
      tableOf(
        ['ZONE', 'ROLE', 'ALGORITHM', 'TAG', ...(isWide ? ['ID'] : [])],
        rows.map(({ zone, role, algorithm, tag, id }) => {
          return [zone, role, algorithm, tag, ...(isWide ? [id] : [])]
        }),
      ),
  })
}

function roleOf({ zone, flags }: StoredKey, keys: readonly StoredKey[]): KeyRole {
  if (!isKeySigning(flags)) return 'zsk'
  const hasZsk = keys.some((key) => equalNames(key.zone, zone) && !isKeySigning(key.flags))
  return hasZsk ? 'ksk' : 'csk'
}
