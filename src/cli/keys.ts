import { systemClock } from '../base/clock.ts'
import { InputError } from '../base/errors.ts'
import { Algorithm } from '../dns/dnssec/algorithms.ts'
import { compareNames, equalNames, nameKey, printKey, printName } from '../dns/name/name.ts'
import type { ImportStore, LoadedKeys, StoredKey } from '../signing/keys/key-store.ts'
import { describeKey } from '../signing/rolls/describe-key.ts'
import { printData } from './data-format.ts'
import { keyTable } from './key-table.ts'
import { type KeysArgs, scanKeysArgs } from './keys-args.ts'
import { printDs } from './keys-ds.ts'
import { exportKey, flagsOfRole, importKey } from './keys-files.ts'
import { openStore } from './keys-place.ts'
import { notePublishedDs, requestKeyRoll, retireKey } from './keys-requests.ts'
import { readZoneState, type StoredRolls } from './keys-state.ts'
import type { Output } from './output.ts'

/** What an action gets. */
interface KeysTask {
  readonly args: KeysArgs
  readonly store: ImportStore
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
  roll: async ({ args, store, output }) => printText(await requestKeyRoll(args, store), output),
  ds: showDs,
  retire: async ({ args, store, output }) => {
    const { keys } = await store.load()
    const { id, zone } = findKey(args, keys)
    return printText(await retireKey(zone, id, store), output)
  },
}

/** `sextant keys ACTION`: the keys of signed zones. Resolves to the exit code. */
export async function runKeys(argv: readonly string[], output: Output): Promise<number> {
  try {
    const args = scanKeysArgs(argv)
    return await ACTIONS[args.action]({ args, store: await openStore(args), output })
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const fault of error.all()) output.printError(fault.print())
    return 1
  }
}

function printText(text: string, { print }: Output): number {
  print(text)
  return 0
}

async function listKeys(task: KeysTask): Promise<number> {
  const { args, store, output } = task
  const { keys, faults } = await store.load()
  await printKeys(keysOf(args.zone, keys), keys, task)
  for (const fault of faults) output.printError(fault.print())
  return faults.length === 0 ? 0 : 1
}

async function showDs({ args, store, output }: KeysTask): Promise<number> {
  const { keys, faults } = await store.load()
  for (const fault of faults) output.printError(fault.print())
  const zone = args.zone!
  if (args.isPublished) return printText(await notePublishedDs(zone, store, nowSeconds()), output)
  const { rolls } = await readZoneState(zone, keys, { store, nowSeconds: nowSeconds() })
  // The server decides which keys of its own have a DS; keys of other providers have one too.
  const isWanted = ({ id, privateKey }: StoredKey): boolean => {
    return rolls === undefined || privateKey === undefined || rolls.ds.keys.includes(id)
  }
  const hasNoDs = rolls?.ds.keys.length === 0
  return printDs({ keys: keysOf(zone, keys), isWanted, hasNoDs }, args, output)
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
  await printKeys([key], keys, task)
  return 0
}

function nowSeconds(): number {
  return Math.floor(systemClock.now() / 1000)
}

/** Prints `shown`, some of `keys`. */
async function printKeys(
  shown: readonly StoredKey[],
  keys: readonly StoredKey[],
  { args, store, output }: KeysTask,
): Promise<void> {
  const zones = new Map(shown.map((key) => [nameKey(key.zone), key.zone]))
  const parts = { store, nowSeconds: nowSeconds() }
  const states = new Map<string, StoredRolls>()
  for (const [name, zone] of zones) states.set(name, await readZoneState(zone, keys, parts))
  const rows = shown.map((key) => describeKey(key, keys, states.get(nameKey(key.zone))!))
  const requests = [...states].flatMap(([name, state]) =>
    state.requests.map((text) => `${printKey(name)} ${text}`),
  )
  printData(output, args.format, {
    data: () => ({ keys: rows, requests }),
    table: (isWide) => [...keyTable(rows, isWide), ...requests],
  })
}
