import { createHash } from 'node:crypto'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent, type RequestOptions } from 'node:https'

/** A connection that nothing was asked on for this long is closed: before the server, or what is between, does. */
const UNUSED_MS = 30_000
/** What a TLS connection is made with. */
const TLS_OPTIONS = ['ca', 'cert', 'key', 'passphrase', 'servername', 'rejectUnauthorized'] as const

/** Keeps connections for the next request, as long as the credentials that they were made with hold. */
export class KeptAgent {
  #agent: HttpAgent | HttpsAgent | undefined
  #key = ''

  /** `options`: as the client library fills them in. */
  of(protocol: string, options: RequestOptions): HttpAgent | HttpsAgent {
    const tls = TLS_OPTIONS.map((name) => [name, options[name]] as const)
    const key = digest(protocol, tls)
    if (this.#agent !== undefined && this.#key === key) return this.#agent
    const kept = { keepAlive: true, timeout: UNUSED_MS }
    this.#agent =
      protocol === 'http:'
        ? new HttpAgent(kept)
        : new HttpsAgent({
            ...kept,
            ...Object.fromEntries(tls.filter(([, value]) => value !== undefined)),
          })
    this.#key = key
    return this.#agent
  }
}

/** Not the values themselves: one of them is a private key. */
function digest(protocol: string, options: readonly (readonly [string, unknown])[]): string {
  const hash = createHash('sha256').update(protocol)
  for (const [name, value] of options) {
    const octets = Buffer.isBuffer(value) ? value : Buffer.from(String(value ?? ''))
    hash.update(`\n${name} ${octets.length}\n`).update(octets)
  }
  return hash.digest('base64')
}
