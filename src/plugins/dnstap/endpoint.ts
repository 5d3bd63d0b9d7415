import { isIP } from 'node:net'
import type { Dispenser } from '../../corefile/dispenser.ts'

/** Where a sink listens. */
export type SinkEndpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp' | 'tls'; readonly host: string; readonly port: number }

/** `sun_path` of the kernel, without the final zero. */
const PATH_OCTETS_MAX = 107
const PORT_MAX = 65_535

/** Reads a path, `unix://PATH`, `tcp://HOST:PORT` or `tls://HOST:PORT`. Throws InputError for anything else. */
export function scanSinkEndpoint(d: Dispenser, text: string): SinkEndpoint {
  const [, scheme = 'unix', rest = text] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/.exec(text) ?? []
  if (scheme === 'unix') {
    const octets = Buffer.byteLength(rest)
    if (octets === 0) throw d.error(`endpoint ${JSON.stringify(text)} has no path`)
    if (octets <= PATH_OCTETS_MAX) return { kind: 'unix', path: rest }
    throw d.error(`path of a socket with ${octets} octets; use at most ${PATH_OCTETS_MAX}`)
  }
  if (scheme !== 'tcp' && scheme !== 'tls') {
    throw d.error(`unknown scheme ${scheme}://; use a path, unix://, tcp:// or tls://`)
  }
  const [, bracketed, plain = '', digits = ''] =
    /^(?:\[([^\]]+)\]|([^\s:/@[\]]+)):(\d{1,5})$/.exec(rest) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  const isGood = host !== '' && port >= 1 && port <= PORT_MAX
  if (isGood && (bracketed === undefined || isIP(bracketed) === 6)) {
    return { kind: scheme, host, port }
  }
  throw d.error(`endpoint ${JSON.stringify(text)}; use ${scheme}://HOST:PORT`)
}
