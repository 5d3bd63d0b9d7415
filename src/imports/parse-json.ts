import { InputError } from '../base/errors.ts'
import { isMapping } from '../records/validate/fields.ts'
import type { YamlValue } from '../yaml/scan-block-yaml.ts'
import type { ImportFile } from './import-format.ts'

/** Returns the JSON object in a file. Throws InputError with the place of the fault. */
export function parseJsonObject(file: ImportFile): { readonly [key: string]: YamlValue } {
  const value = parseJson(file)
  if (isMapping(value)) return value
  throw new InputError({ file: file.name, line: 1 }, 'is not a JSON object')
}

/** Returns the value of a JSON file. Throws InputError with the place of the fault. */
export function parseJson({ name, octets }: ImportFile): YamlValue {
  try {
    return JSON.parse(octets.toString('utf8')) as YamlValue
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    const line = /\(line (\d+) column \d+\)/.exec(error.message)?.[1]
    throw new InputError({ file: name, line: Number(line ?? 1) }, `is not JSON: ${error.message}`)
  }
}
