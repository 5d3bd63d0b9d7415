import { resolve } from 'node:path'
import { InputError } from '../base/errors.ts'
import { scanAddress } from '../dns/text/address.ts'
import { bundledLocator } from '../geo/bundled-locator.ts'
import { printCoordinates } from '../geo/point.ts'
import type { ImportFile } from '../imports/import-format.ts'
import { ImportedHosts } from '../imports/imported-hosts.ts'
import type { RecordDocument } from '../records/record-document.ts'
import { printData } from './data-format.ts'
import { type ImportArgs, scanImportArgs } from './import-args.ts'
import { readDump } from './offline-flags.ts'
import type { Output } from './output.ts'

/**
 * `sextant import`: prints DNSRecords that are made from files of another server or service, and on standard error what
 * they do not have. Resolves to 0; to 1 for invalid input, no DNSRecords, or notes with `--strict`.
 */
export async function runImport(argv: readonly string[], output: Output): Promise<number> {
  try {
    const args = scanImportArgs(argv)
    const hosts = new ImportedHosts()
    const locate = await openDatabase(args.database)
    args.format.read(args.files.map(readFile), hosts, { zone: args.zone, locate })
    const documents = hosts.documents(args.namespace)
    for (const { place, message } of hosts.notes) output.printError(`${place}: ${message}`)
    if (documents.length === 0)
      throw new InputError(undefined, `${args.files.join(' ')}: there is nothing to import`)
    printDocuments(documents, args, output)
    return args.isStrict && hosts.notes.length > 0 ? 1 : 0
  } catch (error) {
    if (!(error instanceof InputError)) throw error
    for (const one of error.all()) output.printError(one.print())
    return 1
  }
}

/** Returns a function that finds the coordinates of an address in a database; undefined = no database is given. */
async function openDatabase(
  file: string | undefined,
): Promise<((address: string) => string) | undefined> {
  if (file === undefined) return undefined
  const locator = bundledLocator(resolve(file))
  await locator.open({ readsEntries: true })
  return (text) => {
    const address = scanAddress(text)
    if (address === undefined) return ''
    return printCoordinates(locator.locate(address.bytes, address.family).coordinates)
  }
}

function readFile(file: string): ImportFile {
  const { name, octets } = readDump(file)
  return { name: file === '-' ? name : file, octets }
}

function printDocuments(
  documents: readonly RecordDocument[],
  { output: format }: ImportArgs,
  output: Output,
): void {
  if (format === 'json') {
    const list = { apiVersion: 'v1', kind: 'List', items: documents }
    printData(output, format, { data: () => list, table: () => [] })
    return
  }
  for (const document of documents) {
    output.print('---')
    printData(output, format, { data: () => document, table: () => [] })
  }
}
