import { InputError } from '../base/errors.ts'
import { printTime } from '../base/rfc3339.ts'
import { printName } from '../dns/name/name.ts'
import type { KeyStore } from '../signing/keys/key-store.ts'
import { isAsked } from '../signing/rolls/observe.ts'
import {
  printRequest,
  type RollRequest,
  type RollState,
  requestRoll,
  scanRollState,
} from '../signing/rolls/roll-state.ts'
import type { KeysArgs } from './keys-args.ts'
import { printNoDs } from './keys-ds.ts'

/**
 * `keys roll`: stores a request in the state of the zone's rolls, which the server carries out. Returns it as a text.
 * @throws InputError.
 */
export async function requestKeyRoll(args: KeysArgs, store: KeyStore): Promise<string> {
  const { role, algorithm, delegation } = args
  const given = [role, algorithm, delegation].filter((one) => one !== undefined)
  if (given.length !== 1)
    fail('keys roll needs one of --ksk, --zsk, --csk, --algorithm NAME and --delegation')
  return request(args.zone!, store, (state) => {
    if (delegation !== undefined) return { kind: 'delegation', isSigned: delegation === 'signed' }
    const { split } = state.wanted
    if (role === undefined) {
      if (state.wanted.algorithm === algorithm) fail('the zone has keys of this algorithm already')
      return { kind: 'layout', layout: { split, algorithm: algorithm! } }
    }
    if (split === (role === 'csk'))
      fail(`the zone has ${split ? 'a KSK and a ZSK, and no CSK' : 'a CSK, and no other key'}`)
    return { kind: 'roll', role }
  })
}

/** `keys retire`. Returns what happens as a text. @throws InputError. */
export async function retireKey(zone: Uint8Array, id: string, store: KeyStore): Promise<string> {
  if ((await store.readState(zone)) !== undefined)
    return request(zone, store, () => ({ kind: 'retire', id }))
  // No server uses the key.
  await store.retire(id)
  return `${id} is retired`
}

/** `keys ds --published`. Returns the request as a text. @throws InputError. */
export function notePublishedDs(
  zone: Uint8Array,
  store: KeyStore,
  nowSeconds: number,
): Promise<string> {
  return request(zone, store, (state) => {
    const { ds, askedSeconds } = state
    if (ds.isKnown && ds.keys.length === 0) fail(printNoDs(zone))
    if (!isAsked(state, nowSeconds)) {
      const end = askedSeconds === Infinity ? '' : ` until ${printTime(askedSeconds * 1000)}`
      fail(`the parent may still follow older CDS of ${printName(zone)}${end}; confirm after that`)
    }
    return { kind: 'published', ids: ds.keys }
  })
}

async function request(
  zone: Uint8Array,
  store: KeyStore,
  make: (state: RollState) => RollRequest,
): Promise<string> {
  let text = ''
  await store.editState(zone, (before) => {
    if (before === undefined)
      fail(`no server has signed ${printName(zone)} with these keys yet; start one first`)
    const made = make(scanRollState(before))
    text = printRequest(made)
    return requestRoll(before, made)
  })
  return `the server will carry out: ${text}`
}

function fail(message: string): never {
  throw new InputError(undefined, message)
}
