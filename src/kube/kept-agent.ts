import { createHash } from 'node:crypto'
import { Agent as HttpAgent } from 'node:http'
import { Agent as HttpsAgent, type RequestOptions } from 'node:https'

/**
 * An idle connection is closed after this time, before the server or a device on the path closes
 * it.
 */
const UNUSED_MS = 30_000
/** The TLS options of a connection. */
const TLS_OPTIONS = ['ca', 'cert', 'key', 'passphrase', 'servername', 'rejectUnauthorized'] as const

/** Keeps connections for later requests while their credentials stay the same. */
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

/** A digest, not the values themselves: one of them is a private key. */
function digest(protocol: string, options: readonly (readonly [string, unknown])[]): string {
  const hash = createHash('sha256').update(protocol)
  for (const [name, value] of options) {
    const octets = Buffer.isBuffer(value) ? value : Buffer.from(String(value ?? ''))
    hash.update(`\n${name} ${octets.length}\n`).update(octets)
  }
  return hash.digest('base64')
}
