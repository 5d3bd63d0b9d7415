import { Rcode } from '../dns/iana/index.ts'
import type { Handler } from './handler.ts'

/**
 * The end of every chain. Its empty name shows links that no link follows (`next.name === ''`):
 * authoritative plugins then answer REFUSED, and for others it returns SERVFAIL.
 */
export const CHAIN_END: Handler = {
  name: '',
  serve(tx) {
    tx.response.error = 'no next plugin found'
    return Rcode.SERVFAIL
  },
}
