import { scanHostPort } from '../../plugin/arguments/host-port.ts'
import { nextOnce } from '../../plugin/arguments/once.ts'
import type { Directive, SetupContext } from '../../plugin/directive.ts'
import { Profiles, SECONDS_MAX } from './profiles.ts'

const ADDRESS_DEFAULT = 'localhost:6053'
const LOOPBACK = /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]):/
const PATH = '/debug/pprof/'
/** Threads may be slow to answer, and the profile long. */
const REPLY_MS_MAX = (SECONDS_MAX + 30) * 1000

/** `pprof [ADDRESS]`: profiles of the threads, over HTTP. */
export const pprof: Directive = {
  name: 'pprof',
  setup(c) {
    const address = scanOptions(c)
    const profiles = new Profiles(c.timers)
    const stop = (): void => profiles.stop()
    return [
      // The HTTP address waits for its requests when it closes: `exit` runs before that.
      { exit: stop, stop, http: { address, path: PATH, reply: () => profiles.index() } },
      ...(['profile', 'heap'] as const).map((kind) => ({
        http: {
          address,
          path: `${PATH}${kind}`,
          replyMsMax: REPLY_MS_MAX,
          reply: (query: URLSearchParams) => profiles.make(kind, query),
        },
      })),
    ]
  },
}

function scanOptions(c: SetupContext): string {
  const d = c.dispenser
  let address = ADDRESS_DEFAULT
  for (let i = 0; nextOnce(d, i); i++) {
    const [given] = d.remainingArgs(0, 1)
    if (given !== undefined) address = scanHostPort(d, given)
    if (!LOOPBACK.test(address)) {
      const reason = 'any client that reaches it can slow the server down and see its code'
      c.warn(`${address} is not only on loopback: ${reason}`, d.position())
    }
    d.eachProperty(() => scanProperty(c))
  }
  return address
}

/** CoreDNS's only property is about locks of Go. */
function scanProperty(c: SetupContext): void {
  const d = c.dispenser
  if (d.value() !== 'block') throw d.unknownProperty(d.value(), ['block'])
  const [rate = '1'] = d.remainingArgs(0, 1)
  if (!/^\d{1,9}$/.test(rate)) throw d.error(`block ${JSON.stringify(rate)}: use a number`)
  c.warn('block has no effect: threads of JavaScript do not wait for locks', d.position())
}
