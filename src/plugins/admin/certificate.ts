import { createSecureContext } from 'node:tls'
import { InputError } from '../../base/errors.ts'
import type { AdminCertificate, TlsTexts } from '../../plugin/admin.ts'
import { WatchedFiles } from './watched-files.ts'

/** A certificate chain and its key in two PEM files. */
export class CertificateFiles implements AdminCertificate {
  readonly #paths: readonly [string, string]
  #files: WatchedFiles

  constructor(cert: string, key: string) {
    this.#paths = [cert, key]
    this.#files = new WatchedFiles(this.#paths)
  }

  read(): TlsTexts {
    this.#files = new WatchedFiles(this.#paths)
    return this.readChanged()!
  }

  readChanged(): TlsTexts | undefined {
    try {
      const texts = this.#files.readChanged()
      if (texts === undefined) return undefined
      const [cert = '', key = ''] = texts
      // Finds files that are no PEM, and a key of another certificate.
      createSecureContext({ cert, key })
      return { cert, key }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      throw new InputError(undefined, `tls ${this.#paths.join(' ')}: ${reason}`, error)
    }
  }
}
