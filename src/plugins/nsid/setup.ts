import { hostname } from 'node:os'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { Directive } from '../../plugin/directive.ts'
import { Nsid } from './nsid.ts'

/** An EDNS option must leave room for the rest of a reply of 512 octets. */
const NSID_OCTETS_MAX = 255

/** `nsid [DATA]`: identifies this server to clients that request it (RFC 5001). */
export const nsid: Directive = {
  name: 'nsid',
  setup(c) {
    let text = hostname() || 'localhost'
    for (let i = 0; nextOnce(c.dispenser, i); i++) {
      const args = c.dispenser.remainingArgs()
      if (args.length > 0) text = args.join(' ')
    }
    const data = new Uint8Array(Buffer.from(text, 'utf8'))
    if (data.length > NSID_OCTETS_MAX) {
      throw c.dispenser.error(`nsid is ${data.length} octets; use at most ${NSID_OCTETS_MAX}`)
    }
    return { handler: (next) => new Nsid(next, data) }
  },
}
