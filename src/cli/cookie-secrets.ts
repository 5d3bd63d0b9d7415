import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { InputError } from '../base/errors.ts'
import { isReadableByOthers, stampOf } from '../base/stat.ts'
import { isSystemError } from '../base/system-error.ts'
import type { Logger } from '../base/telemetry/log.ts'
import type { Timers } from '../base/timers.ts'
import { COOKIE_SECRETS_MAX, type CookieSecrets } from '../dns/edns/cookie-secrets.ts'
import { SIPHASH_KEY_OCTETS } from '../dns/edns/siphash.ts'
import { describe } from '../server/supervisor.ts'

/** As Knot DNS; RFC 7873 section 7.1 recommends at most this. */
const LIFETIME_MS = 26 * 3600_000
const CHECK_MS = 10_000
const SECRET = /^[0-9a-f]{32}$/i

/** Replaces a random secret after its lifetime. Cookies of the one before stay valid until the next time. */
export function rotateCookieSecrets(secrets: CookieSecrets, timers: Timers): void {
  let current = makeSecret()
  secrets.set([current])
  timers.every(LIFETIME_MS, () => {
    const previous = current
    current = makeSecret()
    secrets.set([current, previous])
  })
}

function makeSecret(): Uint8Array {
  return randomBytes(SIPHASH_KEY_OCTETS)
}

/** Loads the secrets of a file, and again after each change of it. Throws an InputError if the first load fails. */
export function followCookieSecrets(
  secrets: CookieSecrets,
  path: string,
  { timers, log }: { readonly timers: Timers; readonly log: Logger },
): void {
  let stamp = ''
  const load = (): void => {
    const loaded = readCookieSecrets(path)
    secrets.set(loaded)
    log.info(`cookie secrets: ${loaded.length} loaded from ${path}`, 'cookie-secrets-loaded')
    if (!isReadableByOthers(path)) return
    log.warning(
      `any user of this machine can read the secrets in ${path}; chmod o-r it`,
      'cookie-secrets-readable',
    )
  }
  const loadIfChanged = (): void => {
    const now = stampOf(path)
    if (now === stamp && now !== '') return
    stamp = now
    load()
  }
  loadIfChanged()
  let fault = ''
  timers.every(CHECK_MS, () => {
    try {
      loadIfChanged()
      fault = ''
    } catch (error) {
      const before = fault
      fault = describe(error)
      if (fault !== before)
        log.error(`${fault}; the former cookie secrets stay in use`, 'cookie-secrets-kept')
    }
  })
}

function readCookieSecrets(path: string): readonly Uint8Array[] {
  try {
    return scanCookieSecrets(readFileSync(path, 'utf8'), path)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw new InputError(undefined, `-cookie-secrets: ${error.message}`, error)
  }
}

/** Scans the secrets: one per line, in hexadecimal. Messages contain none of them. */
export function scanCookieSecrets(text: string, path: string): readonly Uint8Array[] {
  const secrets: Uint8Array[] = []
  text.split('\n').forEach((line, i) => {
    const secret = line.replace(/#.*/, '').trim()
    if (secret === '') return
    if (!SECRET.test(secret)) {
      const wanted = 'a cookie secret has 32 hexadecimal digits; `openssl rand -hex 16` prints one'
      throw new InputError({ file: path, line: i + 1 }, wanted)
    }
    secrets.push(Buffer.from(secret, 'hex'))
  })
  if (secrets.length > 0 && secrets.length <= COOKIE_SECRETS_MAX) return secrets
  const wanted = `1 to ${COOKIE_SECRETS_MAX} cookie secrets are expected, not ${secrets.length}`
  throw new InputError({ file: path, line: 1 }, wanted)
}
