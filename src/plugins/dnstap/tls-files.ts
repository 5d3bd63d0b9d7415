import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createSecureContext, type TlsOptions } from 'node:tls'
import { InputError, type Position } from '../../base/errors.ts'
import { reasonOf } from '../../base/system-error.ts'

/** PEM files of a server that sinks connect to. */
export interface TlsFiles {
  readonly certificate: string
  readonly key: string
  /** Signs the certificates of sinks; undefined = they need none. */
  readonly authority: string | undefined
  readonly position: Position
}

/** Reads the files. `skipVerify`: sinks need no certificate. Throws InputError if one is missing or invalid. */
export function readTlsFiles(files: TlsFiles, root: string, skipVerify: boolean): TlsOptions {
  const { certificate, key, authority, position } = files
  try {
    const read = (path: string): string => readFileSync(resolve(root, path), 'utf8')
    const options = {
      cert: read(certificate),
      key: read(key),
      ...(authority === undefined ? {} : { ca: read(authority) }),
    }
    // Finds files that are no PEM, and a key of another certificate.
    createSecureContext(options)
    const verifies = authority !== undefined && !skipVerify
    return { ...options, requestCert: verifies, rejectUnauthorized: verifies }
  } catch (error) {
    throw new InputError(position, `dnstap tls: ${reasonOf(error)}`, error)
  }
}

export function findTlsFault(files: TlsFiles | undefined, root: string): readonly InputError[] {
  try {
    if (files !== undefined) readTlsFiles(files, root, false)
    return []
  } catch (error) {
    if (error instanceof InputError) return [error]
    throw error
  }
}
