import { isIP } from 'node:net'
import type { Dispenser } from '../../corefile/dispenser.ts'

/** Where a sink listens, or where the server listens for sinks. */
export type SinkEndpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp' | 'tls'; readonly host: string; readonly port: number }

/** `sun_path` of the kernel, without the final zero. */
const PATH_OCTETS_MAX = 107
/** While a socket is opened, its path ends in a dot and the number of the process. */
const ENDING_OCTETS_MAX = 8
const PORT_MAX = 65_535

/**
 * Reads a path, `unix://PATH`, `tcp://HOST:PORT` or `tls://HOST:PORT`. Throws InputError for anything else.
 * `listens`: the server listens there, and HOST may be missing for all addresses.
 */
export function scanSinkEndpoint(d: Dispenser, text: string, listens: boolean): SinkEndpoint {
  const [, scheme = 'unix', rest = text] = /^([a-z][a-z0-9+.-]*):\/\/(.*)$/.exec(text) ?? []
  if (scheme === 'unix') return { kind: 'unix', path: scanPath(d, text, rest, listens) }
  if (scheme !== 'tcp' && scheme !== 'tls') {
    throw d.error(`unknown scheme ${scheme}://; use a path, unix://, tcp:// or tls://`)
  }
  const [, bracketed, plain = '', digits = ''] =
    /^(?:\[([^\]]+)\]|([^\s:/@[\]]*)):(\d{1,5})$/.exec(rest) ?? []
  const host = bracketed ?? plain
  const port = Number(digits)
  const isGood = (host !== '' || listens) && port >= 1 && port <= PORT_MAX
  if (isGood && (bracketed === undefined || isIP(bracketed) === 6)) {
    return { kind: scheme, host, port }
  }
  throw d.error(`endpoint ${JSON.stringify(text)}; use ${scheme}://HOST:PORT`)
}

function scanPath(d: Dispenser, text: string, path: string, listens: boolean): string {
  const octets = Buffer.byteLength(path)
  if (octets === 0) throw d.error(`endpoint ${JSON.stringify(text)} has no path`)
  const most = listens ? PATH_OCTETS_MAX - ENDING_OCTETS_MAX : PATH_OCTETS_MAX
  if (octets <= most) return path
  throw d.error(`path of a socket with ${octets} octets; use at most ${most}`)
}
