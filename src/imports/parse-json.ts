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
  const text = octets.toString('utf8')
  try {
    return JSON.parse(text) as YamlValue
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    // Node.js 20 prints no line.
    const position = Number(/ at position (\d+)/.exec(error.message)?.[1] ?? 0)
    const line = text.slice(0, position).split('\n').length
    throw new InputError({ file: name, line }, `is not JSON: ${error.message}`)
  }
}
