import { printName, scanName } from '../name/name.ts'
import { NameParser, parseName } from '../name/parse-name.ts'
import { expected, type RdataPart } from './part.ts'

/** Kept, so that reading a name allocates no memory for it. */
const parser = new NameParser()

function namePart(mayBeCompressed: boolean): RdataPart {
  return {
    parse: (input, output) => {
      if (!parser.parse(input.bytes, input.at, input.end)) return false
      if (parser.isCompressed && !mayBeCompressed) return false
      output.put(parser.name.subarray(0, parser.octets))
      input.at = parser.end
      return true
    },
    print: (input) => {
      const parsed = parseName(input.bytes, input.at, input.end)
      if (parsed === undefined) return ''
      input.at = parsed.end
      return printName(parsed.name)
    },
    scan: (input, output) => {
      const field = input.next()
      const isName = field !== undefined && !field.quoted
      const name = isName ? scanName(field.text, input.origin) : undefined
      if (name === undefined) return expected('a domain name', field)
      output.put(name)
      return undefined
    },
  }
}

/** A domain name that never arrives compressed (RFC 3597 section 4). */
export const plainName: RdataPart = namePart(false)

/** A domain name in an old type (see layouts.ts), which may arrive compressed. */
export const compressedName: RdataPart = namePart(true)
