import { InputError } from '../base/errors.ts'
import { scanType } from '../dns/iana/types.ts'
import { ROOT_NAME, scanName } from '../dns/name/name.ts'
import { type Address, type Cidr, scanAddress, scanCidr } from '../dns/text/address.ts'
import type { ExplainQuestion } from '../plugin/answer-explainer.ts'
import type { ExplainRequest } from './explain-request.ts'

const SEED_MAX = 2 ** 32 - 1
const SEED_DEFAULT = 1
const LOOPBACK: Address = { family: 1, bytes: new Uint8Array([127, 0, 0, 1]) }

/** Parses a question. Throws InputError that says what is wrong. */
export function scanExplainQuestion(question: ExplainQuestion): ExplainRequest {
  const { name: nameText, type: typeText = 'A', client, subnet, seed = SEED_DEFAULT } = question
  const name = scanName(nameText, ROOT_NAME)
  if (name === undefined) throw fault(`invalid name: "${nameText}"`)
  const type = scanType(typeText)
  if (type === undefined) throw fault(`unknown record type: "${typeText}"`)
  if (client === undefined && subnet === undefined) {
    throw fault('a client is missing: add its source address or its subnet')
  }
  if (!Number.isInteger(seed) || seed < 0 || seed > SEED_MAX) {
    throw fault(`the seed must be from 0 to ${SEED_MAX}, got ${seed}`)
  }
  return {
    name,
    type,
    source: client === undefined ? LOOPBACK : scanClient(client),
    subnet: subnet === undefined ? undefined : scanSubnet(subnet),
    seed,
  }
}

function scanClient(text: string): Address {
  const address = scanAddress(text)
  if (address === undefined) throw fault(`invalid client address: "${text}"`)
  return address
}

/** Parses a prefix, or an address as the longest prefix. */
function scanSubnet(text: string): Cidr {
  const cidr = scanCidr(text)
  if (cidr !== undefined) return cidr
  const address = scanAddress(text)
  if (address !== undefined) return { ...address, bits: address.bytes.length * 8 }
  throw fault(`invalid client subnet: "${text}": write it as 192.0.2.0/24 or 192.0.2.1`)
}

function fault(message: string): InputError {
  return new InputError(undefined, message)
}
