import assert from 'node:assert/strict'
import { compose } from '../../../src/dns/message/compose.ts'
import { parseQuery } from '../../../src/dns/message/parse-query.ts'
import { Query } from '../../../src/dns/message/query.ts'
import { Response } from '../../../src/dns/message/response.ts'
import { type QuerySpec, readMessage, type WireMessage, wireQuery } from '../../support/wire.ts'

/** A query, and the response to it without records. */
export function ask(spec: QuerySpec): { query: Query; response: Response } {
  const packet = wireQuery(spec)
  const query = new Query()
  parseQuery(query, packet, packet.length)
  const response = new Response()
  response.reset(query)
  return { query, response }
}

/** Composes a response, and reads what was written. */
export function send(
  query: Query,
  response: Response,
  limit = 65535,
): { bytes: Uint8Array; message: WireMessage } {
  const out = new Uint8Array(65535).fill(0xee)
  const octets = compose(query, response, out, limit)
  assert(octets <= limit, `${octets} octets keep the limit of ${limit}`)
  assert(
    out.subarray(limit).every((octet) => octet === 0xee),
    'nothing is written behind the limit',
  )
  const bytes = out.slice(0, octets)
  const message = readMessage(bytes)
  assert.equal(message.trailing, 0)
  return { bytes, message }
}
