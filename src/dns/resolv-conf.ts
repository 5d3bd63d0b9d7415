import { isIP } from 'node:net'
import { addressOfHost, type HostPort, splitHostPort } from './host-port.ts'
import { lowerName, scanName } from './name/name.ts'

/** What a file in the form of resolv.conf(5) says. */
export interface ResolvConf {
  readonly servers: readonly HostPort[]
  /** The domains of the last line `search` or `domain`, in lower-case wire form. */
  readonly search: readonly Uint8Array[]
  /** For one attempt. */
  readonly timeoutMs: number
  /** Attempts with each server. */
  readonly attempts: number
}

const TIMEOUT_SECONDS = 5
const TIMEOUT_SECONDS_MAX = 30
const ATTEMPTS = 2
const ATTEMPTS_MAX = 5

/**
 * Reads a file in the form of resolv.conf(5), with its defaults and limits. Omits what is not an address
 * or not a domain name.
 */
export function scanResolvConf(text: string): ResolvConf {
  const servers: HostPort[] = []
  let domains: readonly string[] = []
  let [timeout, attempts] = [TIMEOUT_SECONDS, ATTEMPTS]
  for (const line of text.split('\n')) {
    const [keyword, ...words] = line.trim().split(/\s+/)
    switch (keyword) {
      case 'nameserver':
        servers.push(...serverOf(words))
        break
      case 'search':
        domains = words
        break
      case 'domain':
        domains = words.slice(0, 1)
        break
      case 'options':
        timeout = optionOf(words, 'timeout', TIMEOUT_SECONDS_MAX) ?? timeout
        attempts = optionOf(words, 'attempts', ATTEMPTS_MAX) ?? attempts
    }
  }
  return { servers, search: namesOf(domains), timeoutMs: timeout * 1000, attempts }
}

/** An address may have a port, which resolv.conf(5) does not know: `192.0.2.1:1053`, `[2001:db8::1]:1053`. */
function serverOf([text = '']: readonly string[]): readonly HostPort[] {
  const server = splitHostPort(text)
  return server === undefined || isIP(addressOfHost(server.host)) === 0 ? [] : [server]
}

function namesOf(domains: readonly string[]): readonly Uint8Array[] {
  return domains
    .map((domain) => scanName(domain.endsWith('.') ? domain : `${domain}.`))
    .filter((name) => name !== undefined)
    .map((name) => lowerName(name))
}

function optionOf(words: readonly string[], name: string, most: number): number | undefined {
  const text = words.findLast((word) => word.startsWith(`${name}:`))?.slice(name.length + 1)
  if (text === undefined || !/^\d{1,9}$/.test(text)) return undefined
  return Math.min(Math.max(Number(text), 1), most)
}
