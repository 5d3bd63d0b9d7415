import type { ImportedHosts } from './imported-hosts.ts'

/** A file to import, as a whole. */
export interface ImportFile {
  /** As messages show it. */
  readonly name: string
  readonly octets: Buffer
}

export interface ImportOptions {
  /** Lower-case wire name of the zone; undefined = the files name it. */
  readonly zone: Uint8Array | undefined
  /** Where an address is, such as `52.52,13.40`; '' = unknown. Undefined = no database is given. */
  readonly locate?: ((address: string) => string) | undefined
}

/** A format that DNSRecords can be made from. */
export interface ImportFormat {
  /** Its word on the command line. */
  readonly word: string
  /** What its files are, without an article. */
  readonly files: string
  /**
   * Adds the content of all files to `hosts`, also what no DNSRecord can have. Throws InputError if a file is not of
   * the format.
   */
  readonly read: (
    files: readonly ImportFile[],
    hosts: ImportedHosts,
    options: ImportOptions,
  ) => void
}
