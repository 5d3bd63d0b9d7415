import { Rcode } from '../dns/iana/index.ts'
import type { Handler } from './handler.ts'

/**
 * What stands below the last link of every chain. Its empty name tells links that nothing follows
 * (`next.name === ''`): authoritative plugins then answer REFUSED, where others let it say SERVFAIL.
 */
export const CHAIN_END: Handler = {
  name: '',
  serve(tx) {
    tx.response.error = 'no next plugin found'
    return Rcode.SERVFAIL
  },
}
