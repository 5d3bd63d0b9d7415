import { hostname } from 'node:os'
import { PROGRAM, VERSION } from '../../base/version.ts'
import { Rcode } from '../../dns/iana/index.ts'
import type { Directive } from '../../plugin/directive.ts'
import { type Handler, PASS } from '../../plugin/handler.ts'
import { Chaos } from './chaos.ts'

const DEFAULT_AUTHORS = ['The Sextant authors']
/** Replies without EDNS have room for this many authors. */
const AUTHORS_MAX = 64

/** `chaos [VERSION] [AUTHORS...]`: answers CH TXT queries about the server. */
export const chaos: Directive = {
  name: 'chaos',
  setup(c) {
    let version = `${PROGRAM}-${VERSION}`
    let authors: readonly string[] = DEFAULT_AUTHORS
    while (c.dispenser.next()) {
      const args = c.dispenser.remainingArgs()
      if (args.length > 0) version = args[0]!
      if (args.length > 1) authors = [...new Set(args.slice(1))].sort()
      if (authors.length > AUTHORS_MAX) {
        throw c.dispenser.error(`${authors.length} authors; name at most ${AUTHORS_MAX}`)
      }
      c.dispenser.noBlock()
    }
    const host = hostname() || 'localhost'
    const handler = (next: Handler): Chaos => {
      const otherwise = c.block.directives.includes('template') ? PASS : Rcode.REFUSED
      return new Chaos(next, { version, host, authors, otherwise })
    }
    return { handler, answers: true, takesChaos: true }
  },
}
