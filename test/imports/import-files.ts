import { InputError } from '../../src/base/errors.ts'
import { FORMATS } from '../../src/imports/formats.ts'
import type { ImportFile, ImportFormat } from '../../src/imports/import-format.ts'
import { ImportedHosts } from '../../src/imports/imported-hosts.ts'
import type { RecordDocument } from '../../src/records/record-document.ts'
import { wire } from '../support/zone-text.ts'

/** What an import came to. */
export interface Imported {
  readonly documents: readonly RecordDocument[]
  /** `place: message` */
  readonly notes: readonly string[]
}

/** Imports files, by name. `zone`: as `--zone`. */
export function importFiles(
  format: ImportFormat,
  files: Readonly<Record<string, string | Buffer>>,
  zone?: string,
): Imported {
  const given: ImportFile[] = Object.entries(files).map(([name, text]) => {
    return { name, octets: Buffer.from(text) }
  })
  const hosts = new ImportedHosts()
  format.read(given, hosts, { zone: zone === undefined ? undefined : wire(zone) })
  const documents = hosts.documents(undefined)
  return { documents, notes: hosts.notes.map(({ place, message }) => `${place}: ${message}`) }
}

export function formatOf(word: string): ImportFormat {
  return FORMATS.find((format) => format.word === word)!
}

/** Prints the endpoints of DNSRecords as `host TTL type targets [identifier] property=value…`, one per line. */
export function endpointLines({ documents }: Imported): string[] {
  return documents.flatMap(({ spec }) =>
    spec.endpoints.map((endpoint) => {
      const {
        dnsName,
        recordTTL,
        recordType,
        targets,
        setIdentifier,
        providerSpecific = [],
      } = endpoint
      const properties = providerSpecific.map(({ name, value }) => `${name}=${value}`)
      const id = setIdentifier === undefined ? [] : [`[${setIdentifier}]`]
      return [dnsName, recordTTL ?? '-', recordType, targets.join('+'), ...id, ...properties].join(
        ' ',
      )
    }),
  )
}

/** Returns the errors of an import that is refused, one per line; '' = it is not. */
export function refusal(run: () => unknown): string {
  try {
    run()
    return ''
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    return error
      .all()
      .map((one) => one.print())
      .join('\n')
  }
}
